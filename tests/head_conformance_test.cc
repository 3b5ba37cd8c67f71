// `heed head` on the blocks of the folder HEED_CONFORMANCE_DIR names:
// gpt2_block_small and ppocr_block, a real model's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "tests/cli_fixture.h"
#include "tune/npy_header.h"

namespace heed {
namespace {

namespace fs = std::filesystem;

struct Values {
  std::vector<int64_t> shape;
  std::vector<double> values;
};

// A tensor of float32 or float64.
Values Read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  NpyHeader header;
  std::string why;
  EXPECT_TRUE(ParseNpyHeader(all, &header, &why)) << path << why;
  Values read = {header.shape, {}};
  const char* data = all.data() + header.header_bytes;
  for (int64_t i = 0; i < NpyElementCount(header.shape); ++i) {
    float single;
    double value;
    if (header.descr == "<f4") {
      std::memcpy(&single, data + 4 * i, sizeof single);
      value = single;
    } else {
      std::memcpy(&value, data + 8 * i, sizeof value);
    }
    read.values.push_back(value);
  }
  return read;
}

class HeadConformance : public CliFixture {
 protected:
  void ExpectBlock(const std::string& name, const std::string& options) {
    const char* root = std::getenv("HEED_CONFORMANCE_DIR");
    const fs::path folder = fs::path(root == nullptr ? "" : root) / name;
    if (root == nullptr || !fs::exists(folder)) {
      GTEST_SKIP() << "HEED_CONFORMANCE_DIR names no folder with " << name;
    }
    for (const char* threads : {"1", "2"}) {
      const Result result = Heed("head --model '" + folder.string() +
                                 "' --x '" + (folder / "x.npy").string() +
                                 "' --dump out --threads " + threads + options);
      ASSERT_EQ(result.code, 0) << result.err;
      for (const std::string tensor : {"ln", "q", "k", "v", "scores", "pattern",
                                       "z", "attn_out", "resid"}) {
        ExpectTensor(folder, tensor);
      }
    }
  }

  // 2e-5 for weights, 3e-5 * max(1, max|want|) for the rest.
  void ExpectTensor(const fs::path& folder, const std::string& tensor) {
    const fs::path precise = folder / (tensor + ".f64.npy");
    const Values want =
        Read(fs::exists(precise) ? precise : folder / (tensor + ".f32.npy"));
    const Values got = Read(folder_ / "out" / (tensor + ".npy"));
    ASSERT_EQ(got.shape, want.shape) << tensor;
    double most = 1, worst = 0;
    for (size_t i = 0; i < want.values.size(); ++i) {
      const double expected = want.values[i];
      if (std::isinf(expected)) {
        ASSERT_EQ(got.values[i], expected) << tensor << " " << i;
        continue;
      }
      most = std::max(most, std::fabs(expected));
      const double error = std::fabs(got.values[i] - expected);
      worst = std::isnan(error) ? std::numeric_limits<double>::infinity()
                                : std::max(worst, error);
    }
    EXPECT_LE(worst, tensor == "pattern" ? 2e-5 : 3e-5 * most) << tensor;
  }
};

TEST_F(HeadConformance, Gpt2BlockSmall) {
  ExpectBlock("gpt2_block_small", " --heads 3");
}

TEST_F(HeadConformance, PpocrBlock) {
  ExpectBlock("ppocr_block", " --heads 8 --no-causal");
}

}  // namespace
}  // namespace heed
