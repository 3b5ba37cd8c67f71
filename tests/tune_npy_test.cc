// .npy files: what is written reads back, and every malformed file is refused
// with one line that names it.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tune/npy.h"
#include "tune/npy_header.h"

namespace heed {
namespace {

namespace fs = std::filesystem;

// Four dimensions of what q, k and v may be.
const NpyForm kTensor = {
    4, 4, {NpyType::kFloat32, NpyType::kFloat16, NpyType::kUint16}};

class NpyTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(testing::TempDir()) / ("heed_npy_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const {
    return (folder_ / name).string();
  }
  std::string Write(const std::string& bytes) const {
    std::ofstream(Path("in.npy"), std::ios::binary) << bytes;
    return Path("in.npy");
  }
  // The reason for which these bytes are refused.
  std::string Refusal(const std::string& bytes,
                      const NpyForm& form = kTensor) const {
    NpyTensor tensor;
    std::string why;
    EXPECT_FALSE(ReadNpy(Write(bytes), form, &tensor, &why));
    EXPECT_EQ(why.rfind(Path("in.npy") + ": ", 0), 0u) << why;
    EXPECT_EQ(why.find('\n'), std::string::npos) << why;
    return why.substr(std::min(why.size(), Path("in.npy").size() + 2));
  }

  fs::path folder_;
};

std::string Header(const std::string& dict, int major = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(major);
  bytes += '\0';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) {
    bytes += static_cast<char>(dict.size() >> (8 * i) & 0xff);
  }
  return bytes + dict;
}

std::string Dict(const std::string& descr, const std::string& shape,
                 const std::string& order = "False") {
  return "{'descr': " + descr + ", 'fortran_order': " + order +
         ", 'shape': " + shape + ", }\n";
}

template <typename T>
std::vector<T> Elements(const NpyTensor& tensor) {
  return {tensor.elements<T>(), tensor.elements<T>() + tensor.count()};
}

std::string Data(size_t floats) { return std::string(4 * floats, '\0'); }

TEST_F(NpyTest, ReadsWhatItWrote) {
  const std::vector<std::vector<int64_t>> shapes = {
      {1, 2, 3, 4}, {2, 0, 3, 4}, {7, 1, 1, 1}};
  for (const auto& shape : shapes) {
    std::vector<float> data(static_cast<size_t>(NpyElementCount(shape)));
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i);
    std::string why;
    {
      StagedFile file;
      ASSERT_TRUE(StageNpy(Path("a.npy"), NpyType::kFloat32, shape, data.data(),
                           &file, &why))
          << why;
      ASSERT_TRUE(StagedFile::CommitAll({&file}, &why)) << why;
    }
    NpyTensor tensor;
    ASSERT_TRUE(ReadNpy(Path("a.npy"), kTensor, &tensor, &why)) << why;
    EXPECT_EQ(tensor.shape, shape);
    EXPECT_EQ(Elements<float>(tensor), data);
    EXPECT_EQ((fs::file_size(Path("a.npy")) - 4 * data.size()) % 64, 0u);
  }
}

TEST_F(NpyTest, ReadsAndWritesSixteenBits) {
  const std::vector<uint16_t> words = {0, 0x3C00, 0xFC00, 0x0001, 0x8000, 7};
  for (const NpyType type : {NpyType::kFloat16, NpyType::kUint16}) {
    std::string why;
    StagedFile file;
    ASSERT_TRUE(
        StageNpy(Path("a.npy"), type, {3, 2}, words.data(), &file, &why))
        << why;
    ASSERT_TRUE(StagedFile::CommitAll({&file}, &why)) << why;
    EXPECT_EQ(fs::file_size(Path("a.npy")), 128 + 2 * words.size());
    NpyTensor tensor;
    ASSERT_TRUE(ReadNpy(Path("a.npy"), {2, 2, {type}}, &tensor, &why)) << why;
    EXPECT_EQ(tensor.type, type);
    EXPECT_EQ(Elements<uint16_t>(tensor), words);
  }
  const std::string good = Header(Dict("'<f2'", "(1, 1, 1, 4)")) + Data(2);
  EXPECT_NE(Refusal(good + "xx").find("trailing bytes"), std::string::npos);
  EXPECT_NE(Refusal(good.substr(0, good.size() - 2)).find("truncated data"),
            std::string::npos);
}

TEST_F(NpyTest, ReadsMasksAndIntegers) {
  const auto read = [this](const std::string& descr, const std::string& data,
                           NpyType type) {
    NpyTensor tensor;
    std::string why;
    EXPECT_TRUE(ReadNpy(Write(Header(Dict(descr, "(2,)")) + data),
                        {1, 1, {NpyType::kFloat32, type}}, &tensor, &why))
        << why;
    EXPECT_EQ(tensor.type, type);
    EXPECT_EQ(tensor.count(), 2u);
    return tensor;
  };
  const std::string bytes("\x01\xff", 2);
  const std::vector<uint8_t> want = {1, 255};
  EXPECT_EQ(Elements<uint8_t>(read("'|b1'", bytes, NpyType::kBool)), want);
  EXPECT_EQ(Elements<uint8_t>(read("'|u1'", bytes, NpyType::kUint8)), want);
  const std::string ints("\x02\0\0\0\xff\xff\xff\xff", 8);
  EXPECT_EQ(Elements<int32_t>(read("'<i4'", ints, NpyType::kInt32)),
            (std::vector<int32_t>{2, -1}));
  const std::string longs("\0\0\0\0\x01\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xff",
                          16);
  EXPECT_EQ(Elements<int64_t>(read("'=i8'", longs, NpyType::kInt64)),
            (std::vector<int64_t>{int64_t{1} << 32, -2}));
}

TEST_F(NpyTest, TakesOnlyTheTypesAndRanksThatAreWanted) {
  const NpyForm mask = {2, 4, {NpyType::kBool, NpyType::kUint8}};
  const auto refusal = [&](const std::string& descr, const std::string& shape) {
    return Refusal(Header(Dict(descr, shape)) + std::string(4, '\0'), mask);
  };
  EXPECT_EQ(refusal("'<f4'", "(1, 1)"), "dtype '<f4' (expected bool or uint8)");
  EXPECT_EQ(refusal("'|i1'", "(2, 2)"), "dtype '|i1' (expected bool or uint8)");
  EXPECT_EQ(refusal("'|b1'", "(4,)"), "1 dimensions (4) (expected 2 to 4)");
  EXPECT_EQ(refusal("'|b1'", "(1, 1, 1, 2, 2)"),
            "5 dimensions (1, 1, 1, 2, 2) (expected 2 to 4)");
  EXPECT_EQ(Refusal(Header(Dict("'<f8'", "(1, 1, 1, 1)")) + Data(2)),
            "dtype '<f8' (expected float32, float16 or uint16 for bfloat16)");
}

TEST_F(NpyTest, WritesTheHeaderThatNumpyWrites) {
  const std::string header = MakeNpyHeader("<f4", {1, 2, 3, 4});
  EXPECT_EQ(header.size(), 128u);
  EXPECT_EQ(header.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(header.substr(10, 68),
            "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3, 4), "
            "}   ");
  EXPECT_EQ(header.back(), '\n');
  EXPECT_NE(MakeNpyHeader("<f4", {3}).find("(3,)"), std::string::npos);
  EXPECT_NE(MakeNpyHeader("<f4", {}).find("()"), std::string::npos);
}

TEST_F(NpyTest, ReadsAllVersionsAndSpellings) {
  const std::string plain = Dict("'<f4'", "(1, 1, 1, 2)");
  const std::string odd =
      "  {\"shape\" :(1L,1,1 , 2),'fortran_order':False , 'descr':\"<f4\"}  ";
  for (const int major : {1, 2, 3}) {
    for (const std::string& dict : {plain, odd}) {
      NpyTensor tensor;
      std::string why;
      EXPECT_TRUE(
          ReadNpy(Write(Header(dict, major) + Data(2)), kTensor, &tensor, &why))
          << why;
      EXPECT_EQ(tensor.count(), 2u);
    }
  }
}

TEST_F(NpyTest, RefusesEveryTruncation) {
  const std::string good = Header(Dict("'<f4'", "(1, 1, 1, 2)")) + Data(2);
  for (size_t length = 0; length < good.size(); ++length) {
    const std::string why = Refusal(good.substr(0, length));
    EXPECT_TRUE(why.find("truncated") != std::string::npos ||
                why.find("empty") != std::string::npos ||
                why.find("magic") != std::string::npos)
        << length << ": " << why;
  }
  EXPECT_NE(Refusal(good + "x").find("trailing bytes"), std::string::npos);
}

TEST_F(NpyTest, NamesWhatItCannotRead) {
  const auto dtype = [this](const char* descr) {
    return Refusal(Header(Dict(descr, "(1, 1, 1, 1)")) + Data(1));
  };
  EXPECT_NE(dtype("'>f4'").find("big-endian"), std::string::npos);
  EXPECT_NE(dtype("'|O'").find("object"), std::string::npos);
  EXPECT_NE(dtype("'>f2'").find("big-endian"), std::string::npos);
  EXPECT_NE(dtype("'<i2'").find("uint16 for bfloat16"), std::string::npos);
  EXPECT_NE(dtype("'<f8'").find("'<f8'"), std::string::npos);
  EXPECT_NE(dtype("''").find("dtype"), std::string::npos);
  EXPECT_NE(dtype("[('a', '<f4')]").find("structured"), std::string::npos);
  EXPECT_NE(dtype("'<f4\x1b[2J'").find("characters"), std::string::npos);

  const auto file = [this](const std::string& dict) {
    return Refusal(Header(dict) + Data(1));
  };
  EXPECT_NE(file(Dict("'<f4'", "(1, 1, 1, 1)", "True")).find("Fortran order"),
            std::string::npos);
  EXPECT_NE(file(Dict("'<f4'", "(1,)")).find("dimensions"), std::string::npos);
  EXPECT_NE(file(Dict("'<f4'", "()")).find("dimensions"), std::string::npos);
  EXPECT_NE(file(Dict("'<f4'", "(1, -1, 1, 1)")).find("negative"),
            std::string::npos);
  EXPECT_NE(file(Dict("'<f4'", "(1, x, 1, 1)")).find("not a number"),
            std::string::npos);
}

TEST_F(NpyTest, RefusesHostileShapesWithoutAllocating) {
  const auto file = [this](const std::string& shape) {
    return Refusal(Header(Dict("'<f4'", shape)) + Data(1));
  };
  EXPECT_NE(file("(4294967296, 4294967296, 4294967296, 1)").find("overflows"),
            std::string::npos);
  EXPECT_NE(file("(4611686018427387904, 1, 1, 1)").find("overflows"),
            std::string::npos);
  EXPECT_NE(file("(99999999999999999999999, 1, 1, 1)").find("2^62"),
            std::string::npos);
  EXPECT_NE(file("(1000000, 1000000, 1, 1)").find("truncated"),
            std::string::npos);
  // Zero times anything is zero: no overflow, but then the data are too many.
  EXPECT_NE(file("(0, 4611686018427387903, 9, 9)").find("trailing"),
            std::string::npos);
  std::string many = "(1";
  for (int i = 0; i < 100; ++i) many += ", 1";
  EXPECT_NE(file(many + ")").find("dimensions"), std::string::npos);
}

TEST_F(NpyTest, RefusesBadHeaders) {
  EXPECT_NE(Refusal("PK\x03\x04 something else").find("magic"),
            std::string::npos);
  EXPECT_NE(Refusal(Header(Dict("'<f4'", "(1, 1, 1, 1)"), 4)).find("version"),
            std::string::npos);
  std::string huge = Header(Dict("'<f4'", "(1, 1, 1, 1)"), 2);
  huge[11] = '\x7f';  // a header of 2 GB
  EXPECT_NE(Refusal(huge + Data(1)).find("claims"), std::string::npos);
  for (const char* dict :
       {"", "{", "{}", "()", "{'descr': '<f4'}", "{'descr': '<f4",
        "{'descr' '<f4'}", "{'evil': __import__('os')}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': "
        "(1, 1, 1, 1)}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (1, 1, 1, 1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': [1, 1, 1, 1]}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1)} x",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,, 1, 1, 1)}"}) {
    EXPECT_NE(Refusal(Header(dict) + Data(1)).find("bad header"),
              std::string::npos)
        << dict;
  }
}

TEST_F(NpyTest, RandomDamageNeverCrashes) {
  const std::string good = Header(Dict("'<f4'", "(1, 1, 1, 2)")) + Data(2);
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    std::string bad = good;
    for (int flips = 0; flips < 3; ++flips) {
      bad[random() % (good.size() - 8)] = static_cast<char>(random());
    }
    NpyHeader header;
    std::string why;
    if (!ParseNpyHeader(bad, &header, &why)) {
      EXPECT_FALSE(why.empty());
    }
  }
}

TEST_F(NpyTest, RefusesWhatIsNoRegularFile) {
  NpyTensor tensor;
  std::string why;
  EXPECT_FALSE(ReadNpy(Path("missing.npy"), kTensor, &tensor, &why));
  EXPECT_NE(why.find("No such file"), std::string::npos);
  EXPECT_FALSE(ReadNpy(folder_.string(), kTensor, &tensor, &why));
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  EXPECT_FALSE(ReadNpy(Path("fifo"), kTensor, &tensor, &why));
  EXPECT_NE(why.find("not a regular file"), std::string::npos);
}

TEST_F(NpyTest, StagedFilesAppearTogetherOrNotAtAll) {
  const float data[] = {1, 2};
  std::string why;
  std::ofstream(Path("old.npy")) << "old";
  {
    StagedFile file;
    ASSERT_TRUE(
        StageNpy(Path("old.npy"), NpyType::kFloat32, {2}, data, &file, &why))
        << why;
  }
  std::string content;
  std::ifstream(Path("old.npy")) >> content;
  EXPECT_EQ(content, "old");
  {
    StagedFile file;
    EXPECT_FALSE(
        StageNpy(folder_.string(), NpyType::kFloat32, {2}, data, &file, &why));
    EXPECT_NE(why.find("not a regular file"), std::string::npos);
    StagedFile nowhere;
    EXPECT_FALSE(StageNpy(Path("no/such/dir.npy"), NpyType::kFloat32, {2}, data,
                          &nowhere, &why));
  }
  // No temporary file is left.
  EXPECT_EQ(
      std::distance(fs::directory_iterator(folder_), fs::directory_iterator()),
      1);
}

}  // namespace
}  // namespace heed
