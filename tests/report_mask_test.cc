// Public bug reports of other attention libraries as tests: masks, and rows
// that they leave without keys. Each test's name begins with the kind and
// number of its case.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/attention_case.h"
#include "tests/report_case.h"
#include "tests/special_values.h"
#include "tests/stored_case.h"

namespace heed::test {
namespace {

// A mask of these extents in which every key is visible, or nothing is added.
void AddMask(Case* c, int32_t kind, int64_t batch, int64_t heads,
             int64_t len_q) {
  c->problem.mask = kind;
  CaseMask& mask = c->mask;
  mask.batch = batch;
  mask.heads = heads;
  mask.len_q = len_q;
  mask.room = c->problem.len_k;
  const auto size = static_cast<size_t>(batch * heads * len_q * mask.room);
  if (kind == HEED_MASK_BOOL) {
    mask.bytes.assign(size, 1);
  } else {
    mask.values.assign(size, 0.0f);
  }
}

// Hides a key, whatever the kind of mask. `row` counts the mask's rows.
void Hide(Case* c, int64_t row, int64_t key) {
  const int64_t at = row * c->mask.room + key;
  if (c->problem.mask == HEED_MASK_BOOL) {
    c->mask.bytes[at] = 0;
  } else {
    c->mask.values[at] = -kInfinity;
  }
}

// pytorch#103749
TEST(PublicReports, ROW01_APaddingRowIsZeroAndTheOthersAreRight) {
  for (const int32_t kind : {HEED_MASK_BOOL, HEED_MASK_F32}) {
    Case c = GenCase(MakeProblem(1, 2, 2, 6, 10, 8, 8));
    c.problem.scale_mode = HEED_SCALE_VALUE;
    c.problem.scale = 0.125;
    AddMask(&c, kind, 1, 1, 6);
    for (int64_t i = 0; i < 6; ++i) {
      for (int64_t j = 0; j < 10; ++j) {
        if (i == 5 || j > i) Hide(&c, i, j);
      }
    }
    ForEveryPath(c, [&](Result* got, const std::string& how) {
      ExpectReference(c, got, how);
      for (int64_t head = 0; head < 2; ++head) {
        EXPECT_EQ(got->lse[head * 6 + 5], -kInfinity) << how;
        for (int64_t d = 0; d < 8; ++d) {
          EXPECT_TRUE(SameBits(got->out[(head * 6 + 5) * 8 + d], 0.0f)) << how;
        }
      }
    });
  }
}

// buddy-mlir#837
TEST(PublicReports, ROW03_WholeTilesMayBeMaskedBeforeTheOnlyKey) {
  for (const int32_t kind : {HEED_MASK_BOOL, HEED_MASK_F32}) {
    for (const int64_t tile : {48, 96, 144, 240, 768}) {
      const int64_t len = 3 * tile + 1;
      for (const int64_t only :
           {int64_t{0}, tile - 1, tile, 2 * tile, len - 1}) {
        Case c = GenCase(MakeProblem(1, 1, 1, 4, len, 16, 16));
        AddMask(&c, kind, 1, 1, 1);
        for (int64_t j = 0; j < len; ++j) {
          if (j != only) Hide(&c, 0, j);
        }
        ForEveryPath(c, [&](Result* got, const std::string& how) {
          for (size_t i = 0; i < got->out.size(); ++i) {
            // w * v / w rounds three times.
            const float want = c.v[only * 16 + i % 16];
            ASSERT_NEAR(got->out[i], want, 2e-7 * std::fabs(want))
                << only << " of " << how;
          }
        });
      }
    }
  }
}

// pytorch#110213
TEST(PublicReports, ROW05_TheLowestFiniteFloatIsNotMinusInfinity) {
  Case c = GenCase(MakeProblem(1, 1, 1, 3, 3, 4, 4));
  AddMask(&c, HEED_MASK_F32, 1, 1, 3);
  Case plain = c;
  plain.problem.mask = HEED_MASK_NONE;
  std::fill(c.mask.values.begin(), c.mask.values.end(), 1.0f);
  std::fill_n(c.mask.values.begin(), 3, -FLT_MAX);
  const Result unmasked = RunHeed(plain);
  ForEveryPath(c, [&](Result* got, const std::string& how) {
    for (int d = 0; d < 4; ++d) {
      const double mean = (c.v[d] + c.v[4 + d] + c.v[8 + d]) / 3.0;
      ASSERT_NEAR(got->out[d], mean, 1e-6) << how;
      ASSERT_NEAR(got->out[4 + d], unmasked.out[4 + d], 1e-6) << how;
      ASSERT_NEAR(got->out[8 + d], unmasked.out[8 + d], 1e-6) << how;
    }
    ASSERT_NEAR(got->lse[1], unmasked.lse[1] + 1, 1e-6) << how;
  });
}

// onnxruntime#14363
TEST(PublicReports, ROW09_PaddingAndCausalLineApplyTogether) {
  Case c = GenCase(MakeProblem(1, 13, 13, 7, 7, 37, 37, HEED_CAUSAL_TOP_LEFT));
  const std::vector<uint8_t> keep = {0, 1, 1, 0, 0, 1, 0};
  for (const int32_t kind : {HEED_MASK_BOOL, HEED_MASK_F32}) {
    AddMask(&c, kind, 1, 1, 1);
    for (int64_t j = 0; j < 7; ++j) {
      if (keep[j] == 0) Hide(&c, 0, j);
    }
    ForEveryPath(c, [&](Result* got, const std::string& how) {
      ExpectReference(c, got, how);
      for (int64_t head = 0; head < 13; ++head) {
        for (int64_t d = 0; d < 37; ++d) {
          const float* out = &got->out[head * 7 * 37 + d];
          ASSERT_TRUE(SameBits(out[0], 0.0f)) << how;
          const float want = c.v[(head * 7 + 1) * 37 + d];
          ASSERT_NEAR(out[37], want, 2e-7 * std::fabs(want)) << how;
        }
      }
    });
  }
}

// pytorch#127055
TEST(PublicReports, ROW11_ABandThatLeavesEarlyTilesEmptyIsRight) {
  for (const int64_t len : {640, 1300}) {
    Case c = MakeCase(MakeProblem(1, 1, 1, len, len, 4, 4));
    for (std::vector<float>* x : {&c.q, &c.k, &c.v}) {
      std::fill(x->begin(), x->end(), 1.0f);
    }
    AddMask(&c, HEED_MASK_F32, 1, 1, len);
    for (int64_t i = 0; i < len; ++i) {
      for (int64_t j = 0; j < len; ++j) {
        if (j < i - 9 || j > i) Hide(&c, i, j);
      }
    }
    ForEveryPath(c, [&](Result* got, const std::string& how) {
      for (const float x : got->out) ASSERT_NEAR(x, 1.0f, 1.2e-7) << how;
    });
  }
}

// openvino#31630
TEST(PublicReports, MSK01_AMaskThatHidesNothingGivesTheBitsOfNone) {
  const Case plain = GenCase(MakeProblem(2, 4, 4, 8, 8, 16, 16));
  Case c = plain;
  AddMask(&c, HEED_MASK_BOOL, 2, 4, 8);
  for (const Settings& settings : EveryKernel()) {
    EXPECT_EQ(Difference(RunHeed(c, settings), RunHeed(plain, settings)), "")
        << NameOf(settings);
  }
  for (const KernelCut& cut : EveryCut(plain.problem)) {
    EXPECT_EQ(Difference(RunKernels(c, cut), RunKernels(plain, cut)), "")
        << NameOf(cut);
  }
}

// pytorch#103963
TEST(PublicReports, MSK03_AFloatMaskOfZerosAndOnesIsAdded) {
  Case c = MakeCase(MakeProblem(1, 1, 1, 1, 2, 1, 1));
  c.v = {0, 1};
  AddMask(&c, HEED_MASK_F32, 1, 1, 1);
  c.mask.values = {0, 1};
  ForEveryPath(c, [&](Result* got, const std::string& how) {
    EXPECT_NEAR(got->out[0], 0.7310586, 1e-6) << how;
  });
}

// openvino#21217
TEST(PublicReports, MSK05_EveryShapeOfMaskBroadcasts) {
  for (const int32_t kind : {HEED_MASK_BOOL, HEED_MASK_F32}) {
    for (int shape = 0; shape < 8; ++shape) {
      Case c = GenCase(MakeProblem(3, 2, 2, 5, 7, 16, 16));
      AddMask(&c, kind, (shape & 4) != 0 ? 3 : 1, (shape & 2) != 0 ? 2 : 1,
              (shape & 1) != 0 ? 5 : 1);
      const auto rows =
          static_cast<int64_t>(c.mask.batch * c.mask.heads * c.mask.len_q);
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t j = 0; j < 7; ++j) {
          if ((row * 7 + j) * 7919 % 11 < 4) Hide(&c, row, j);
          if (kind == HEED_MASK_F32) {
            c.mask.values[row * 7 + j] += static_cast<float>((row + j) % 5) / 4;
          }
        }
      }
      ExpectEveryKernelRight(c);
    }
  }
}

// torch-xpu-ops#5090
TEST(PublicReports, MSK07_AMaskIsByQueryHead) {
  Case c = GenCase(MakeProblem(3, 8, 2, 8, 8, 64, 64));
  AddMask(&c, HEED_MASK_BOOL, 3, 8, 8);
  for (int64_t row = 0; row < 3 * 8 * 8; ++row) {
    for (int64_t j = 0; j < 8; ++j) {
      if (j != row / 8 % 8) Hide(&c, row, j);
    }
  }
  ForEveryPath(c, [&](Result* got, const std::string& how) {
    for (int64_t i = 0; i < static_cast<int64_t>(got->out.size()); ++i) {
      const int64_t head = i / (8 * 64) % 8, b = i / (8 * 8 * 64);
      const float want = c.v[((b * 2 + head / 4) * 8 + head) * 64 + i % 64];
      ASSERT_NEAR(got->out[i], want, 2e-7 * std::fabs(want)) << how;
    }
  });
}

// executorch#10284
TEST(PublicReports, MSK09_ABiasDoesNotShortenTheKeys) {
  const Case plain = GenCase(MakeProblem(1, 1, 1, 4, 16, 16, 16));
  Case c = plain;
  AddMask(&c, HEED_MASK_F32, 1, 1, 4);
  ExpectEveryKernelRight(c);
  EXPECT_EQ(Difference(RunHeed(c), RunHeed(plain)), "");
}

// TITAN#11. A mask of any other type cannot be said, but for a wrong number.
TEST(PublicReports, MSK11_MasksOfF32AndOfTheirOwnTypeGoWithEveryType) {
  for (const int32_t kind : {HEED_MASK_BOOL, HEED_MASK_F32, HEED_MASK_DTYPE}) {
    Case c = GenCase(MakeProblem(2, 3, 1, 5, 61, 16, 16));
    AddMask(&c, kind, 2, 1, 5);
    for (int64_t row = 0; row < 10; ++row) {
      for (int64_t j = 0; j < 61; ++j) {
        if (kind != HEED_MASK_BOOL) {
          c.mask.values[row * 61 + j] = static_cast<float>((row * j) % 9) / 4;
        }
        if ((row + j) % 5 == 0) Hide(&c, row, j);
      }
    }
    ExpectEveryKernelRight(c);
    for (const int32_t dtype : kStoredDtypes) {
      const StoredCase stored = Store(c, dtype);
      const double rounding = dtype == HEED_F16 ? 0x1p-11 : 0x1p-8;
      ForEveryPath(stored, [&](Result* got, const std::string& how) {
        ExpectReference(stored.widened, got, how, 1e-5 + rounding);
      });
    }
  }
  for (const int32_t wrong : {-1, 4, 7, 1 << 20}) {
    Case c = GenCase(MakeProblem(1, 1, 1, 2, 3, 4, 4));
    AddMask(&c, HEED_MASK_F32, 1, 1, 2);
    c.problem.mask = wrong;
    Result untouched;
    DenseCall(c, &untouched);
    const Result got = RunHeed(c);
    EXPECT_EQ(got.status, HEED_INVALID_ARGUMENT);
    EXPECT_NE(got.error.find("problem.mask is " + std::to_string(wrong)),
              std::string::npos)
        << got.error;
    EXPECT_TRUE(SameBits(got.out, untouched.out));
  }
}

// pytorch#54789
TEST(PublicReports, MSK13_AnyByteButZeroShowsAKey) {
  for (const int64_t len : {1, 7, 8, 9, 47, 48, 61, 100}) {
    Case c = GenCase(MakeProblem(1, 2, 1, 3, len, 16, 16));
    AddMask(&c, HEED_MASK_BOOL, 1, 2, 3);
    Case ones = c;
    const uint8_t bytes[] = {0, 1, 2, 255, 0, 128, 254, 64, 16};
    for (size_t i = 0; i < c.mask.bytes.size(); ++i) {
      c.mask.bytes[i] = bytes[i % 9];
      ones.mask.bytes[i] = bytes[i % 9] != 0 ? 1 : 0;
    }
    const Result want = RunHeed(ones);
    EXPECT_EQ(Difference(RunHeed(c), want), "") << len;
    ExpectEveryKernelRight(c);
  }
}

// pytorch#101967
TEST(PublicReports, NUM09_AMaskedKeyHasNoInfluenceWhateverItHolds) {
  for (const int32_t kind : {HEED_MASK_BOOL, HEED_MASK_F32}) {
    Case c = MakeCase(MakeProblem(1, 1, 1, 2, 2, 4, 4));
    for (size_t i = 0; i < 8; ++i) {
      c.q[i] = c.k[i] = c.v[i] = static_cast<float>(i);
    }
    AddMask(&c, kind, 1, 1, 1);
    Hide(&c, 0, 1);
    for (const float poison : {1e10f, kNan, kInfinity}) {
      for (const bool in_v : {false, true}) {
        Case poisoned = c;
        (in_v ? poisoned.v : poisoned.k)[4] = poison;
        ForEveryPath(poisoned, [&](Result* got, const std::string& how) {
          for (size_t i = 0; i < 8; ++i) {
            ASSERT_NEAR(got->out[i], c.v[i % 4], 1e-6) << poison << how;
          }
        });
      }
    }
  }
}

// A part of the address space in which nothing is but what is written.
class Sparse {
 public:
  explicit Sparse(size_t bytes)
      : bytes_(bytes),
        data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~Sparse() {
    if (data_ != MAP_FAILED) munmap(data_, bytes_);
  }
  Sparse(const Sparse&) = delete;
  Sparse& operator=(const Sparse&) = delete;
  void* data() const { return data_ == MAP_FAILED ? nullptr : data_; }

 private:
  size_t bytes_;
  void* data_;
};

// pytorch#187227
TEST(PublicReports, SHP05_MaskRowsMayLieMoreThanTwoToThe31ElementsApart) {
  const int64_t stride = (int64_t{1} << 31) + 8;
  const Case c = GenCase(MakeProblem(1, 1, 1, 3, 8, 8, 8));
  for (const int32_t kind : {HEED_MASK_BOOL, HEED_MASK_F32}) {
    const size_t element = kind == HEED_MASK_BOOL ? 1 : sizeof(float);
    const Sparse mask(static_cast<size_t>(2 * stride + 8) * element);
    if (mask.data() == nullptr) GTEST_SKIP() << "no 17 GB of address space";
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t j = 0; j < 8; ++j) {
        const int64_t at = i * stride + j;
        if (kind == HEED_MASK_BOOL) {
          static_cast<uint8_t*>(mask.data())[at] = i == j ? 1 : 0;
        } else {
          static_cast<float*>(mask.data())[at] = i == j ? 0 : -kInfinity;
        }
      }
    }
    heed_problem p = c.problem;
    p.mask = kind;
    const auto check = [&](const Result& got, const std::string& how) {
      for (int64_t i = 0; i < 24; ++i) {
        ASSERT_NEAR(got.out[i], c.v[i], 2e-7) << how;
      }
    };
    for (const Settings& settings : EveryKernel()) {
      Result got;
      heed_call call = DenseCall(c, &got);
      call.mask = {mask.data(), 0, 0, stride, 1};
      ASSERT_EQ(RunCall(p, call, settings), HEED_OK) << heed_last_error();
      check(got, NameOf(settings));
    }
    for (const KernelCut& cut : EveryCut(p)) {
      Result got;
      heed_call call = DenseCall(c, &got);
      call.mask = {mask.data(), 0, 0, stride, 1};
      RunKernels(p, call, cut);
      check(got, NameOf(cut));
    }
  }
}

}  // namespace
}  // namespace heed::test
