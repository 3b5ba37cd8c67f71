// Headers of .safetensors files: what is read, and that every one that is
// damaged is refused with a line that says how.
#include "tune/safetensors.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/checkpoint_files.h"

namespace heed {
namespace {

bool Parse(const std::string& file, std::vector<StoredTensor>* tensors,
           std::string* why) {
  return ParseSafetensors(reinterpret_cast<const unsigned char*>(file.data()),
                          file.size(), tensors, why);
}

void ExpectRefused(const std::string& file, const std::string& says) {
  std::vector<StoredTensor> tensors;
  std::string why;
  EXPECT_FALSE(Parse(file, &tensors, &why)) << says;
  EXPECT_NE(why.find(says), std::string::npos) << why << "\nwant: " << says;
  EXPECT_EQ(why.find('\n'), std::string::npos) << why;
}

// One tensor "a" with such an entry, and so many bytes of data.
void ExpectEntryRefused(const std::string& entry, size_t data_bytes,
                        const std::string& says) {
  ExpectRefused(
      SafetensorsFile("{\"a\":" + entry + "}", std::string(data_bytes, '\0')),
      says);
}

TEST(Safetensors, TensorsAreReadInTheOrderOfTheirData) {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},)"
      R"("b":{"dtype":"BF16","shape":[],"data_offsets":[24,26]},)"
      R"("a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("none":{"dtype":"I64","shape":[4,0],"data_offsets":[24,24]},)"
      R"("half":{"dtype":"F4","shape":[6],"data_offsets":[26,29],"more":1}}   )";
  std::vector<StoredTensor> tensors;
  std::string why;
  ASSERT_TRUE(
      Parse(SafetensorsFile(header, std::string(29, 'x')), &tensors, &why))
      << why;
  ASSERT_EQ(tensors.size(), 4u);
  const size_t data = 8 + header.size();
  EXPECT_EQ(tensors[0].name, "a");
  EXPECT_EQ(tensors[0].dtype, "F32");
  EXPECT_EQ(tensors[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(tensors[0].begin, data);
  EXPECT_EQ(tensors[0].end, data + 24);
  EXPECT_EQ(tensors[1].name, "none");
  EXPECT_EQ(tensors[1].begin, tensors[1].end);
  EXPECT_EQ(tensors[2].name, "b");
  EXPECT_TRUE(tensors[2].shape.empty());
  EXPECT_EQ(tensors[3].end, data + 29);
}

TEST(Safetensors, AFileWithoutTensorsIsOne) {
  std::vector<StoredTensor> tensors(1);
  std::string why;
  EXPECT_TRUE(Parse(SafetensorsFile("{}", ""), &tensors, &why)) << why;
  EXPECT_TRUE(tensors.empty());
}

TEST(Safetensors, DamagedLengthsAreRefused) {
  ExpectRefused("", "truncated: 0 bytes");
  ExpectRefused("1234567", "truncated: 7 bytes");
  ExpectRefused(SafetensorsFile(3, "{}", ""),
                "truncated: the header claims 3 bytes, the file has 2");
  ExpectRefused(SafetensorsFile(uint64_t{1} << 63, "{}", ""),
                "the header claims 9223372036854775808 bytes (at most "
                "100000000 are read)");
  ExpectRefused(SafetensorsFile(std::numeric_limits<uint64_t>::max(), "{}", ""),
                "the header claims 18446744073709551615 bytes");
  ExpectRefused(SafetensorsFile(100000001, "{}", ""), "at most 100000000");
  ExpectRefused(SafetensorsFile(0, "", "{}"), "header: no JSON: it is empty");
}

TEST(Safetensors, EveryTruncationOfAGoodFileIsRefused) {
  const std::string file = MakeSafetensors(Gpt2Tensors(4, ""));
  std::vector<StoredTensor> tensors;
  std::string why;
  ASSERT_TRUE(Parse(file, &tensors, &why)) << why;
  for (size_t size = 0; size < file.size(); ++size) {
    // A copy of the exact size, so that a sanitizer sees a read beyond it.
    const std::vector<unsigned char> cut(file.begin(), file.begin() + size);
    EXPECT_FALSE(ParseSafetensors(cut.data(), size, &tensors, &why)) << size;
  }
}

TEST(Safetensors, HeadersThatAreNoObjectAreRefused) {
  ExpectRefused(SafetensorsFile("[]", ""), "header: expected a JSON object");
  ExpectRefused(SafetensorsFile("7", ""), "header: expected a JSON object");
  ExpectRefused(SafetensorsFile(" {}", ""), "header: expected a JSON object");
  ExpectRefused(SafetensorsFile("{\"a\":", ""),
                "header: not valid JSON at byte");
  ExpectRefused(SafetensorsFile("{}x", ""), "header: not valid JSON");
  ExpectRefused(SafetensorsFile("{\"\xff\xfe\":1}", ""),
                "header: not valid JSON at byte 3, after '{\"\\xff'");
  ExpectRefused(SafetensorsFile(std::string(50000, '['), ""),
                "header: nested deeper than 3");
  ExpectRefused(SafetensorsFile(R"({"__metadata__":{"a":1}})", ""),
                "__metadata__ is no object of strings");
  ExpectRefused(SafetensorsFile(R"({"__metadata__":[]})", ""),
                "__metadata__ is no object of strings");
}

TEST(Safetensors, DuplicateKeysAreRefused) {
  const std::string a = R"("a":{"dtype":"U8","shape":[1],"data_offsets":)";
  ExpectRefused(SafetensorsFile("{" + a + "[0,1]}," + a + "[1,2]}}", "12"),
                "header: key \"a\" occurs twice in one object");
  ExpectEntryRefused(
      R"({"dtype":"U8","dtype":"F32","shape":[1],"data_offsets":[0,1]})", 1,
      "key \"dtype\" occurs twice");
  // A key by its escape is the same key.
  ExpectRefused(SafetensorsFile("{" + a + R"([0,1]},"\u0061":{}})", "1"),
                "occurs twice");
}

TEST(Safetensors, WrongEntriesNameTheTensor) {
  ExpectEntryRefused("3", 0, "tensor a: expected an object");
  ExpectEntryRefused("{}", 0, "tensor a: dtype is missing");
  ExpectEntryRefused(R"({"dtype":4,"shape":[],"data_offsets":[0,4]})", 4,
                     "tensor a: dtype is missing or no string");
  ExpectEntryRefused(R"({"dtype":"F33","shape":[],"data_offsets":[0,4]})", 4,
                     "tensor a: dtype \"F33\" is unknown");
  ExpectEntryRefused(R"({"dtype":"f32","shape":[],"data_offsets":[0,4]})", 4,
                     "tensor a: dtype \"f32\" is unknown");
  ExpectEntryRefused(R"({"dtype":"F32","data_offsets":[0,4]})", 4,
                     "tensor a: shape is missing");
  ExpectEntryRefused(R"({"dtype":"F32","shape":4,"data_offsets":[0,4]})", 4,
                     "tensor a: shape is missing or no array");
  ExpectEntryRefused(R"({"dtype":"F32","shape":[1]})", 4,
                     "tensor a: data_offsets are missing");
  ExpectEntryRefused(R"({"dtype":"F32","shape":[1],"data_offsets":[0]})", 4,
                     "tensor a: data_offsets are missing or not two");
  const std::string name = R"({"x\u001b[2J\n)" + std::string(300, 'y');
  ExpectRefused(SafetensorsFile(name + "\":{}}", ""), "tensor x\\x1b[2J\\x0ay");
}

TEST(Safetensors, WrongShapesNameTheTensor) {
  const auto shaped = [](const std::string& shape) {
    return R"({"dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,4]})";
  };
  ExpectEntryRefused(shaped("[-1]"), 4, "dimension 0 of shape is -1");
  ExpectEntryRefused(shaped("[1,1.0]"), 4, "dimension 1 of shape is 1.0");
  ExpectEntryRefused(shaped("[\"1\"]"), 4, "dimension 0 of shape is \"1\"");
  ExpectEntryRefused(shaped("[9223372036854775808]"), 4,
                     "expected an integer from 0 to 2^63 - 1");
  ExpectEntryRefused(shaped("[18446744073709551617]"), 4, "dimension 0");
  ExpectEntryRefused(shaped("[9223372036854775807]"), 4,
                     "tensor a: shape (9223372036854775807) overflows");
  ExpectEntryRefused(shaped("[4294967296,4294967296]"), 4, "overflows");
  // 2^59 * 32 bits wraps a 64-bit product around to 0.
  ExpectEntryRefused(shaped("[576460752303423488,1]"), 4, "overflows");
  ExpectEntryRefused(shaped("[2]"), 4,
                     "tensor a: shape (2) of F32 takes 8 bytes, data_offsets "
                     "hold 4");
  ExpectEntryRefused(shaped("[0,9223372036854775807]"), 4,
                     "takes 0 bytes, data_offsets hold 4");
  std::string ones = "1";
  for (int i = 0; i < 32; ++i) ones += ",1";
  ExpectEntryRefused(shaped("[" + ones + "]"), 4,
                     "shape has 33 dimensions; expected at most 32");
  ExpectEntryRefused(R"({"dtype":"F4","shape":[3],"data_offsets":[0,1]})", 1,
                     "takes 1 and a part bytes");
}

TEST(Safetensors, WrongPlacesNameTheTensor) {
  const auto placed = [](const std::string& offsets) {
    return R"({"dtype":"F32","shape":[1],"data_offsets":)" + offsets + "}";
  };
  ExpectEntryRefused(placed("[4,0]"), 4,
                     "tensor a: data_offsets are [4,0]; expected 0 <= begin");
  ExpectEntryRefused(placed("[-4,0]"), 4, "data_offsets are [-4,0]");
  ExpectEntryRefused(placed("[0,4.0]"), 4, "data_offsets are [0,4.0]");
  ExpectEntryRefused(
      placed("[18446744073709551612,18446744073709551615]"), 4,
      "data_offsets are [18446744073709551612,18446744073709551615]");
  ExpectEntryRefused(placed("[0,4]"), 3,
                     "tensor a: truncated: data_offsets end at 4, the file's "
                     "data at 3");
  ExpectEntryRefused(placed("[9223372036854775803,9223372036854775807]"), 4,
                     "truncated: data_offsets end at 9223372036854775807");
}

TEST(Safetensors, DataBelongToOneTensor) {
  const auto two = [](const std::string& a, const std::string& b) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a +
           R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}";
  };
  ExpectRefused(SafetensorsFile(two("[0,4]", "[3,7]"), "1234567"),
                "tensor b: its data overlap those of a, at data offset 3");
  ExpectRefused(SafetensorsFile(two("[0,4]", "[0,4]"), "1234"),
                "tensor b: its data overlap those of a");
  ExpectRefused(SafetensorsFile(two("[0,4]", "[5,9]"), "123456789"),
                "tensor b: a hole of 1 bytes");
  ExpectRefused(SafetensorsFile(two("[1,5]", "[5,9]"), "123456789"),
                "tensor a: a hole of 1 bytes");
  ExpectRefused(SafetensorsFile(two("[0,4]", "[4,8]"), "1234567890"),
                "2 bytes at the end of the file belong to no tensor");
}

}  // namespace
}  // namespace heed
