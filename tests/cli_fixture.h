// Runs the command `heed` on files in a folder of the test's own.
#ifndef HEED_TESTS_CLI_FIXTURE_H_
#define HEED_TESTS_CLI_FIXTURE_H_

#include <gtest/gtest.h>
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/include/heed.h"
#include "tune/npy.h"

namespace heed {

class CliFixture : public testing::Test {
 protected:
  struct Result {
    int code;
    std::string out, err;
  };

  void SetUp() override;
  void TearDown() override;

  std::string Path(const std::string& name) const;
  // All bytes of a file; empty if there is none.
  std::string Slurp(const std::string& name) const;

  Result Heed(const std::string& arguments,
              const std::string& environment = "HEED_TUNE=off") const;

  // The command in a process of its own, stdout and stderr in this file of the
  // folder; and its exit code, or its signal below 0.
  pid_t Start(const std::vector<std::string>& arguments,
              const std::string& output = "output.txt") const;
  static int Wait(pid_t child);

  // Exit code `code`, nothing on stdout, and one line on stderr with `says`.
  void ExpectFailure(const std::string& arguments, int code,
                     const std::string& says) const;

  void WriteFile(const std::string& name, NpyType type,
                 const std::vector<int64_t>& shape, const void* data) const;
  // N(0, 1) values of a heed_dtype.
  void WriteTensor(const std::string& name, const std::vector<int64_t>& shape,
                   uint64_t seed, int32_t dtype = HEED_F32) const;
  // q.npy (2, 4, 37, 24), k.npy (2, 2, 53, 24), v.npy (2, 2, 53, 20).
  void WriteInputs(int32_t dtype = HEED_F32) const;
  // Whatever is there, of any rank and type.
  NpyTensor ReadFile(const std::string& name) const;

  std::filesystem::path folder_;
};

// `heed run` on what WriteInputs() writes.
extern const char kRun[];

}  // namespace heed

#endif  // HEED_TESTS_CLI_FIXTURE_H_
