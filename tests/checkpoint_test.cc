// Checkpoints on disk: one file or several, and everything that a folder may
// hold instead. Each failure is one line that begins with the file's path.
#include "tune/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/checkpoint_files.h"

namespace heed {
namespace {

namespace fs = std::filesystem;

class CheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              (std::string("heed_checkpoint_") +
               testing::UnitTest::GetInstance()->current_test_info()->name() +
               std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const {
    return (folder_ / name).string();
  }
  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }

  // That opening `path` fails, and why.
  std::string WhyNotOpened(const std::string& path) const {
    Checkpoint checkpoint;
    std::string why;
    EXPECT_FALSE(checkpoint.Open(path, &why)) << path;
    EXPECT_EQ(why.find('\n'), std::string::npos) << why;
    return why;
  }

  std::string WhyNotFound(const std::string& path,
                          const std::string& tensor) const {
    Checkpoint checkpoint;
    std::string why;
    EXPECT_TRUE(checkpoint.Open(path, &why)) << why;
    CheckpointTensor found;
    EXPECT_FALSE(checkpoint.Find(tensor, &found, &why)) << path;
    EXPECT_EQ(why.find('\n'), std::string::npos) << why;
    return why;
  }

  fs::path folder_;
};

TEST_F(CheckpointTest, AFileAndItsFolderAreTheSame) {
  Write("model.safetensors", MakeSafetensors(Gpt2Tensors(4, "")));
  for (const std::string& path :
       {Path("model.safetensors"), folder_.string(), folder_.string() + "/"}) {
    Checkpoint checkpoint;
    std::string why;
    ASSERT_TRUE(checkpoint.Open(path, &why)) << why;
    EXPECT_EQ(checkpoint.Names().size(), 8u);
    EXPECT_TRUE(fs::equivalent(checkpoint.folder(), folder_));
    CheckpointTensor tensor;
    ASSERT_TRUE(checkpoint.Find("h.0.ln_1.weight", &tensor, &why)) << why;
    EXPECT_EQ(tensor.dtype, "F32");
    EXPECT_EQ(tensor.shape, std::vector<int64_t>{4});
    EXPECT_EQ(tensor.bytes, 16u);
    float first;
    std::memcpy(&first, tensor.data, sizeof first);
    EXPECT_NEAR(first, 1, 0.6);
  }
}

TEST_F(CheckpointTest, AnIndexFindsTensorsInTheirFiles) {
  const std::vector<MadeTensor> all = Gpt2Tensors(4, "");
  Write("one.safetensors", MakeSafetensors({all[0], all[1]}));
  Write("two.safetensors", MakeSafetensors({all[2]}));
  Write("model.safetensors.index.json",
        R"({"metadata":{"total_size":1},"weight_map":{
            "h.0.ln_1.weight":"one.safetensors",
            "h.0.attn.c_attn.weight":"two.safetensors",
            "lost":"one.safetensors",
            "gone":"three.safetensors"}})");
  for (const std::string& path :
       {folder_.string(), Path("model.safetensors.index.json")}) {
    Checkpoint checkpoint;
    std::string why;
    ASSERT_TRUE(checkpoint.Open(path, &why)) << why;
    CheckpointTensor tensor;
    ASSERT_TRUE(checkpoint.Find("h.0.attn.c_attn.weight", &tensor, &why))
        << why;
    EXPECT_EQ(tensor.file, Path("two.safetensors"));
    EXPECT_EQ(tensor.shape, (std::vector<int64_t>{4, 12}));
    // It is in the file, but the index has the word.
    EXPECT_FALSE(checkpoint.Has("h.0.ln_1.bias"));
  }
  EXPECT_EQ(WhyNotFound(folder_, "lost"),
            Path("one.safetensors") + ": tensor lost: missing, though " +
                Path("model.safetensors.index.json") + " says it is here");
  EXPECT_EQ(WhyNotFound(folder_, "gone"),
            Path("three.safetensors") + ": No such file or directory (which " +
                Path("model.safetensors.index.json") +
                " names for tensor gone)");
  EXPECT_EQ(WhyNotFound(folder_, "never"),
            Path("model.safetensors.index.json") + ": tensor never: missing");
}

TEST_F(CheckpointTest, OfAFolderWithBothTheFileIsTaken) {
  Write("model.safetensors", MakeSafetensors({{"a", {1}}}));
  Write("model.safetensors.index.json", "{}");
  Checkpoint checkpoint;
  std::string why;
  ASSERT_TRUE(checkpoint.Open(folder_.string(), &why)) << why;
  EXPECT_TRUE(checkpoint.Has("a"));
}

TEST_F(CheckpointTest, WrongIndexesAreRefused) {
  const std::string path = Path("model.safetensors.index.json");
  const auto why = [&](const std::string& text) {
    Write("model.safetensors.index.json", text);
    return WhyNotOpened(folder_.string());
  };
  EXPECT_EQ(why(""), path + ": no JSON: it is empty");
  EXPECT_EQ(why("[]"), path + ": weight_map is missing or no object");
  EXPECT_EQ(why("{}"), path + ": weight_map is missing or no object");
  EXPECT_EQ(why(R"({"weight_map":3})"),
            path + ": weight_map is missing or no object");
  EXPECT_EQ(why(R"({"weight_map":{"a":"x","a":"y"}})"),
            path + ": key \"a\" occurs twice in one object");
  for (const char* file : {"../model.safetensors", "/etc/passwd", "..", ".", "",
                           "a/b", "a\\\\b", "a\\u0000b", "a\\nb"}) {
    EXPECT_NE(why(std::string(R"({"weight_map":{"a":")") + file + "\"}}")
                  .find("expected the plain name of a file in the same folder"),
              std::string::npos)
        << file;
  }
  EXPECT_NE(why(R"({"weight_map":{"a":7}})").find("tensor a: its file is 7"),
            std::string::npos);
}

TEST_F(CheckpointTest, WhatIsNoFileIsRefused) {
  EXPECT_EQ(WhyNotOpened(Path("none")),
            Path("none") + ": No such file or directory");
  EXPECT_EQ(WhyNotOpened(folder_.string()),
            folder_.string() +
                ": neither model.safetensors nor model.safetensors.index.json "
                "is in this folder");
  const std::string model = Path("model.safetensors");
  fs::create_directory(model);
  EXPECT_EQ(WhyNotOpened(folder_.string()), model + ": a folder, not a file");
  fs::remove(model);
  // Opening one for reading would wait for somebody to write.
  ASSERT_EQ(mkfifo(model.c_str(), 0600), 0);
  EXPECT_EQ(WhyNotOpened(folder_.string()), model + ": not a regular file");
  EXPECT_EQ(WhyNotOpened(model), model + ": not a regular file");
  fs::remove(model);
  fs::create_symlink("model.safetensors", model);
  EXPECT_EQ(WhyNotOpened(folder_.string()),
            model + ": Too many levels of symbolic links");
  fs::remove(model);
  fs::create_symlink("nowhere", model);
  EXPECT_EQ(WhyNotOpened(folder_.string()),
            model + ": No such file or directory");
  EXPECT_EQ(WhyNotOpened("/dev/null"), "/dev/null: not a regular file");
}

TEST_F(CheckpointTest, LinksAreFollowed) {
  fs::create_directory(Path("blobs"));
  Write("blobs/1234", MakeSafetensors({{"a", {2}}}));
  fs::create_symlink("blobs/1234", Path("model.safetensors"));
  Checkpoint checkpoint;
  std::string why;
  EXPECT_TRUE(checkpoint.Open(folder_.string(), &why)) << why;
}

TEST_F(CheckpointTest, AFolderWithALoopIsRefused) {
  fs::create_symlink("b", Path("a"));
  fs::create_symlink("a", Path("b"));
  EXPECT_EQ(WhyNotOpened(Path("a")),
            Path("a") + ": Too many levels of symbolic links");
  EXPECT_EQ(
      WhyNotOpened(Path("a/model.safetensors")),
      Path("a/model.safetensors") + ": Too many levels of symbolic links");
}

TEST_F(CheckpointTest, WhatIsDamagedIsRefusedWithItsPath) {
  const std::string model = Path("model.safetensors");
  Write("model.safetensors", "");
  EXPECT_EQ(
      WhyNotOpened(folder_.string()),
      model + ": truncated: 0 bytes, and the header's length alone takes 8");
  // A file of holes: zeros as far as it reaches.
  fs::resize_file(model, 1 << 20);
  EXPECT_EQ(WhyNotOpened(model), model + ": header: no JSON: it is empty");
  const std::string good = MakeSafetensors({{"a", {64}}, {"b", {64}}});
  Write("model.safetensors", good.substr(0, good.size() - 1));
  EXPECT_EQ(WhyNotOpened(model),
            model +
                ": tensor b: truncated: data_offsets end at 512, the "
                "file's data at 511");
}

TEST_F(CheckpointTest, SmallFilesHaveALimit) {
  Write("config.json", "12345");
  std::string text, why;
  EXPECT_TRUE(ReadSmallFile(Path("config.json"), 5, &text, &why)) << why;
  EXPECT_EQ(text, "12345");
  EXPECT_FALSE(ReadSmallFile(Path("config.json"), 4, &text, &why));
  EXPECT_EQ(why, Path("config.json") + ": 5 bytes (at most 4 are read)");
}

}  // namespace
}  // namespace heed
