# The program as a WebAssembly module for the what-if page (preset web, scripts/what-if).

# Bad input is told by exceptions, which cost no time where none is thrown.
add_compile_options(-fwasm-exceptions)
add_link_options(-fwasm-exceptions)
# Sizes have 32 bits here, which is enough for what a browser holds.
target_compile_options(headroom_warnings INTERFACE -Wno-shorten-64-to-32)
include(${CMAKE_CURRENT_LIST_DIR}/web_dependencies.cmake)

# Makes of a program a JavaScript module: a function that makes an instance, whose callMain() takes arguments, and whose
# functions are those of bindings/c/headroom.h.
function(headroom_web_module program)
  set_target_properties(${program} PROPERTIES SUFFIX .mjs)
  target_sources(${program} PRIVATE bindings/c/headroom.cpp)
  target_link_options(${program} PRIVATE
    -sMODULARIZE -sEXPORT_ES6 -sENVIRONMENT=web,worker -sINVOKE_RUN=0 -sEXPORTED_RUNTIME_METHODS=callMain,FS,UTF8ToString,stringToUTF8,lengthBytesUTF8
    -sEXPORTED_FUNCTIONS=_main,_malloc,_free,_headroom_ask,_headroom_free,_headroom_version
    -sALLOW_MEMORY_GROWTH -sMAXIMUM_MEMORY=2GB -sTOTAL_STACK=1MB)
endfunction()
