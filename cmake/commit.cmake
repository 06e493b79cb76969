# Run by every build: writes OUTPUT, a header that names the commit that is built, when that changes. Of sources without
# a repository, such as a release's archive, the commit is not known and left empty.
execute_process(COMMAND git -C "${ROOT}" rev-parse --short=12 HEAD
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
# A folder below somebody else's repository is not that repository.
execute_process(COMMAND git -C "${ROOT}" rev-parse --show-cdup
  OUTPUT_VARIABLE above OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(failed OR NOT above STREQUAL "")
  set(commit "")
else()
  execute_process(COMMAND git -C "${ROOT}" diff --quiet HEAD RESULT_VARIABLE changed ERROR_QUIET)
  if(changed)
    string(APPEND commit "+")
  endif()
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "#define HEADROOM_COMMIT \"${commit}\"\n" @ONLY)
