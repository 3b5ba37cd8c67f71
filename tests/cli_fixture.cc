#include "tests/cli_fixture.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>

#include "tune/npy_header.h"
#include "tune/storage.h"

namespace heed {

namespace fs = std::filesystem;

const char kRun[] = "run --q q.npy --k k.npy --v v.npy --out o.npy ";

void CliFixture::SetUp() {
  const std::string name =
      testing::UnitTest::GetInstance()->current_test_info()->name();
  folder_ = fs::path(testing::TempDir()) /
            ("heed_cli_" + name + std::to_string(getpid()));
  fs::create_directories(folder_);
}

void CliFixture::TearDown() { fs::remove_all(folder_); }

std::string CliFixture::Path(const std::string& name) const {
  return (folder_ / name).string();
}

std::string CliFixture::Slurp(const std::string& name) const {
  std::ifstream file(Path(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

CliFixture::Result CliFixture::Heed(const std::string& arguments,
                                    const std::string& environment) const {
  // Locks of its own: tests that run at once must not wait for each other.
  const std::string command = "cd '" + folder_.string() + "' && TMPDIR='" +
                              folder_.string() + "' " + environment + " '" +
                              HEED_CLI_PATH + "' " + arguments +
                              " >stdout.txt 2>stderr.txt";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, Slurp("stdout.txt"),
          Slurp("stderr.txt")};
}

pid_t CliFixture::Start(const std::vector<std::string>& arguments,
                        const std::string& output) const {
  const pid_t child = fork();
  if (child != 0) return child;
  if (chdir(folder_.c_str()) != 0) _exit(99);
  setenv("TMPDIR", folder_.c_str(), 1);
  setenv("HEED_TUNE", "off", 1);
  if (std::freopen(output.c_str(), "w", stdout) == nullptr) _exit(99);
  dup2(STDOUT_FILENO, STDERR_FILENO);
  std::vector<char*> argv = {const_cast<char*>(HEED_CLI_PATH)};
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  execv(HEED_CLI_PATH, argv.data());
  _exit(99);
}

int CliFixture::Wait(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void CliFixture::ExpectFailure(const std::string& arguments, int code,
                               const std::string& says) const {
  const Result result = Heed(arguments);
  EXPECT_EQ(result.code, code) << arguments << "\n" << result.err;
  EXPECT_NE(result.err.find(says), std::string::npos) << arguments << "\n"
                                                      << result.err;
  ASSERT_FALSE(result.err.empty()) << arguments;
  EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << arguments << "\n"
                                                          << result.err;
  EXPECT_TRUE(result.out.empty()) << arguments << "\n" << result.out;
}

void CliFixture::WriteFile(const std::string& name, NpyType type,
                           const std::vector<int64_t>& shape,
                           const void* data) const {
  std::string why;
  StagedFile file;
  ASSERT_TRUE(StageNpy(Path(name), type, shape, data, &file, &why)) << why;
  ASSERT_TRUE(StagedFile::CommitAll({&file}, &why)) << why;
}

void CliFixture::WriteTensor(const std::string& name,
                             const std::vector<int64_t>& shape, uint64_t seed,
                             int32_t dtype) const {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> data(static_cast<size_t>(NpyElementCount(shape)));
  for (float& x : data) x = normal(random);
  std::vector<uint16_t> words(data.size());
  const void* elements = data.data();
  if (dtype != HEED_F32) {
    Narrow(dtype, data.data(), data.size(), words.data());
    elements = words.data();
  }
  const NpyType type = dtype == HEED_F32   ? NpyType::kFloat32
                       : dtype == HEED_F16 ? NpyType::kFloat16
                                           : NpyType::kUint16;
  WriteFile(name, type, shape, elements);
}

void CliFixture::WriteInputs(int32_t dtype) const {
  WriteTensor("q.npy", {2, 4, 37, 24}, 1, dtype);
  WriteTensor("k.npy", {2, 2, 53, 24}, 2, dtype);
  WriteTensor("v.npy", {2, 2, 53, 20}, 3, dtype);
}

NpyTensor CliFixture::ReadFile(const std::string& name) const {
  NpyTensor tensor;
  std::string why;
  EXPECT_TRUE(ReadNpy(
      Path(name),
      {0,
       8,
       {NpyType::kFloat32, NpyType::kFloat16, NpyType::kUint16, NpyType::kBool,
        NpyType::kUint8, NpyType::kInt32, NpyType::kInt64}},
      &tensor, &why))
      << why;
  return tensor;
}

}  // namespace heed
