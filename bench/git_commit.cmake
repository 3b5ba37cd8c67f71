# Writes OUTPUT, a header with the commit that SOURCE_DIR is at, "+changes" if the tree differs from
# it, or "unknown" outside a clone. Run at each build: a commit noted when CMake ran would be stale.
# The file is touched only when its text changes, so that nothing is compiled again for nothing.
find_program(HEED_GIT git)
set(commit "unknown")
if(HEED_GIT AND EXISTS ${SOURCE_DIR}/.git)  # else a clone around us would answer
  execute_process(COMMAND ${HEED_GIT} -C ${SOURCE_DIR} describe --always --abbrev=12 --exclude=*
                          --dirty=+changes
                  OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE
                  RESULT_VARIABLE failed ERROR_QUIET)
  if(NOT failed)
    set(commit "${described}")
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[
#ifndef HEED_BENCH_GIT_COMMIT_H_
#define HEED_BENCH_GIT_COMMIT_H_

namespace heed {
constexpr char kGitCommit[] = "@commit@";
}  // namespace heed

#endif  // HEED_BENCH_GIT_COMMIT_H_
]] @ONLY)
