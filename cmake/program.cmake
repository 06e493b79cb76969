# The program, and the library of its commands.

# cli: the commands, for the program and for whoever asks them in a process of their own
add_library(headroom_commands STATIC
  src/cli/ask.cpp
  src/cli/calibrate.cpp
  src/cli/capacity_flags.cpp
  src/cli/changed_flags.cpp
  src/cli/choice_flags.cpp
  src/cli/check.cpp
  src/cli/command_line.cpp
  src/cli/compare.cpp
  src/cli/completions.cpp
  src/cli/console.cpp
  src/cli/estimate.cpp
  src/cli/explain.cpp
  src/cli/find_flags.cpp
  src/cli/flags.cpp
  src/cli/follow_up.cpp
  src/cli/inquiry.cpp
  src/cli/launch_file.cpp
  src/cli/interrupt.cpp
  src/cli/frontier.cpp
  src/cli/help.cpp
  src/cli/import.cpp
  src/cli/launch_output.cpp
  src/cli/launched_space.cpp
  src/cli/list.cpp
  src/cli/manual.cpp
  src/cli/memory.cpp
  src/cli/merge.cpp
  src/cli/notes.cpp
  src/cli/other_names.cpp
  src/cli/output.cpp
  src/cli/page_output.cpp
  src/cli/picture_file.cpp
  src/cli/plan.cpp
  src/cli/plan_lists.cpp
  src/cli/program.cpp
  src/cli/progress.cpp
  src/cli/question.cpp
  src/cli/recipe_flags.cpp
  src/cli/report.cpp
  src/cli/request_flags.cpp
  src/cli/run_files.cpp
  src/cli/schema.cpp
  src/cli/shards.cpp
  src/cli/space_flags.cpp
  src/cli/stopping.cpp
  src/cli/shell.cpp
  src/cli/sweep.cpp
  src/cli/sweep_check.cpp
  src/cli/sweep_points.cpp
  src/cli/terminal.cpp
  src/cli/usage.cpp
  src/cli/validate.cpp
  src/cli/system.cpp
  src/cli/system_flags.cpp
  src/cli/trace.cpp
  src/cli/version.cpp
)
if(NOT EMSCRIPTEN)
  target_sources(headroom_commands PRIVATE src/cli/mcp.cpp src/cli/serve.cpp src/cli/service.cpp)
endif()
headroom_unity_by_folder(headroom_commands)
headroom_for_shared_libraries(headroom_commands)
target_compile_options(headroom_commands PRIVATE ${HEADROOM_TEXT_FLAGS})
target_include_directories(headroom_commands PUBLIC src)
include(cmake/version.cmake)
target_link_libraries(headroom_commands PUBLIC headroom::headroom
  PRIVATE ${headroom_cli_libraries} headroom_warnings)

add_executable(headroom_cli src/cli/main.cpp)
set_target_properties(headroom_cli PROPERTIES OUTPUT_NAME headroom)
target_link_libraries(headroom_cli PRIVATE headroom_commands headroom_warnings)
if(HEADROOM_SELF_CONTAINED)
  target_link_options(headroom_cli PRIVATE -static)  # libstdc++, libgcc and the C library: any Linux runs it
endif()
if(EMSCRIPTEN)
  headroom_web_module(headroom_cli)
endif()
