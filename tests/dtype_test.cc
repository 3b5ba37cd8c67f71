// f16 and bf16 are storage only: a 16-bit call gives the bits of the f32 call
// on the widened inputs, out rounded to nearest even. So all that is promised
// of f32 holds of them too.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/attention_case.h"
#include "tests/fenced_buffer.h"
#include "tests/guarded_tensor.h"
#include "tests/input_families.h"
#include "tests/stored_case.h"

namespace heed::test {
namespace {

// On every target: the model's tile, and tiles that copy keys and values per
// tile and per call, on one, two and seven threads.
std::vector<Settings> EverySettings(bool fused_only = false) {
  std::vector<heed_tile> tiles = VariedTiles();
  tiles.push_back({16, 96, 2, 3, 1, 0, 0, {}});
  tiles.push_back({16, 48, 3, 2, 1, 0, 0, {}});
  std::vector<Settings> all;
  for (const std::string& target : TargetNames(fused_only)) {
    Settings settings;
    settings.target = target;
    all.push_back(settings);
    settings.pinned = true;
    int threads = 0;
    for (const heed_tile& tile : tiles) {
      settings.tile = tile;
      settings.threads = std::vector<int>{1, 2, 7}[threads++ % 3];
      all.push_back(settings);
    }
  }
  return all;
}

std::string NameOf(const StoredCase& c, const Settings& settings) {
  char text[256] = "";
  heed_problem_print(&c.problem, text, sizeof(text));
  return std::string(text) + " " + NameOf(settings);
}

// All patterns as the values of one key that has all the weight.
TEST(Dtype, EveryPatternOfVComesBack) {
  for (const int32_t dtype : kStoredDtypes) {
    StoredCase c =
        Store(MakeCase(MakeProblem(1, 64, 64, 1, 1, 1, 1024)), dtype);
    for (size_t i = 0; i < c.v.size(); ++i) c.v[i] = static_cast<uint16_t>(i);
    ASSERT_EQ(c.v.size(), 0x10000u);
    for (const Settings& settings : EverySettings()) {
      std::vector<uint16_t> out;
      std::vector<float> lse;
      const heed_call call = StoredCall(c, &out, &lse);
      ASSERT_EQ(RunCall(c.problem, call, settings), HEED_OK);
      for (size_t i = 0; i < out.size(); ++i) {
        // A sum that starts from 0 has no minus zero.
        const uint16_t want = c.v[i] == 0x8000 ? 0 : c.v[i];
        if (std::isnan(ValueOf(dtype, want))) {
          ASSERT_TRUE(std::isnan(ValueOf(dtype, out[i]))) << i;
        } else {
          ASSERT_EQ(out[i], want) << NameOf(c, settings);
        }
      }
    }
  }
}

// All patterns as scores, through q and through k: lse is the score.
TEST(Dtype, EveryPatternOfQAndKIsWidened) {
  for (const int32_t dtype : kStoredDtypes) {
    for (const bool through_q : {true, false}) {
      const int64_t heads_kv = through_q ? 1 : 1024;
      Case plain = MakeCase(MakeProblem(1, 1024, heads_kv, through_q ? 64 : 1,
                                        through_q ? 1 : 64, 1, 1));
      plain.problem.scale_mode = HEED_SCALE_VALUE;
      plain.problem.scale = 1;
      std::fill(plain.q.begin(), plain.q.end(), 1.0f);
      std::fill(plain.k.begin(), plain.k.end(), 1.0f);
      StoredCase c = Store(plain, dtype);
      std::vector<uint16_t>& bits = through_q ? c.q : c.k;
      ASSERT_EQ(bits.size(), 0x10000u);
      for (size_t i = 0; i < bits.size(); ++i) {
        bits[i] = static_cast<uint16_t>(i);
      }
      (through_q ? c.widened.q : c.widened.k) = ValuesOf(dtype, bits);
      for (const Settings& settings : EverySettings()) {
        ASSERT_EQ(Difference(RunStored(c, settings),
                             Rounded(RunHeed(c.widened, settings), dtype)),
                  "")
            << NameOf(c, settings);
      }
    }
  }
}

// Averages of two neighbours are ties, and a third value decides others.
TEST(Dtype, AveragesAreRoundedToNearestEven) {
  for (const int32_t dtype : kStoredDtypes) {
    const int64_t dim = 4096;
    StoredCase c = Store(MakeCase(MakeProblem(1, 1, 1, 1, 4, 1, dim)), dtype);
    Random random(4);
    for (int round = 0; round < 8; ++round) {
      std::vector<uint16_t> want;
      for (int64_t d = 0; d < dim; ++d) {
        // Finite, and so near to each other that all sums are exact in float.
        const int largest = dtype == HEED_F16 ? 0x7800 : 0x7E00;
        const auto bits = static_cast<uint16_t>(random.Below(largest));
        const auto other =
            static_cast<uint16_t>(bits + random.Below(round % 2 == 0 ? 2 : 64));
        const int sign = random.Below(2) == 0 ? 0 : 0x8000;
        double sum = 0;
        for (int key = 0; key < 4; ++key) {
          const int value = (key < 2 ? bits : other) | sign;
          c.v[key * dim + d] = static_cast<uint16_t>(value);
          sum += ValueOf(dtype, c.v[key * dim + d]);
        }
        want.push_back(NearestTo(dtype, static_cast<float>(sum / 4)));
        if (want.back() == 0x8000) want.back() = 0;
      }
      for (const std::string& target : TargetNames(/*fused_only=*/false)) {
        Settings settings;
        settings.target = target;
        std::vector<uint16_t> out;
        std::vector<float> lse;
        const heed_call call = StoredCall(c, &out, &lse);
        ASSERT_EQ(RunCall(c.problem, call, settings), HEED_OK);
        EXPECT_EQ(out, want) << NameOf(c, settings);
      }
    }
  }
}

TEST(Dtype, BitsAreTheRoundedBitsOfF32OnTheWidenedInputs) {
  const heed_problem problems[] = {
      MakeProblem(1, 1, 1, 1, 1, 1, 1),
      MakeProblem(2, 6, 2, 17, 53, 24, 17, HEED_CAUSAL_BOTTOM_RIGHT),
      MakeProblem(1, 3, 1, 15, 97, 15, 40, HEED_CAUSAL_TOP_LEFT),
      MakeProblem(1, 8, 2, 1, 801, 64, 33),
      MakeProblem(1, 1, 1, 5, 769, 16, 7, HEED_CAUSAL_OFFSET),
      MakeProblem(1, 2, 1, 3, 50, 0, 6),
      MakeProblem(1, 2, 1, 3, 50, 6, 0)};
  uint64_t seed = 1;
  for (const int32_t dtype : kStoredDtypes) {
    for (const Family& family : Families()) {
      for (const heed_problem& problem : problems) {
        Case plain = MakeCase(problem, /*causal_offset=*/766);
        Random random(seed++);
        family.fill(&random, &plain);
        const StoredCase c = Store(plain, dtype);
        const Result program = Rounded(RunRowProgram(c.widened), dtype);
        for (const Settings& settings : EverySettings(/*fused_only=*/true)) {
          ASSERT_EQ(Difference(RunStored(c, settings), program), "")
              << family.name << " " << NameOf(c, settings);
        }
        for (const Settings& settings : EverySettings()) {
          ASSERT_EQ(Difference(RunStored(c, settings),
                               Rounded(RunHeed(c.widened, settings), dtype)),
                    "")
              << family.name << " " << NameOf(c, settings);
        }
      }
    }
  }
}

TEST(Dtype, StridedTensorsGiveTheBitsOfDenseAndGuardsStayIntact) {
  const uint16_t nan = 0xFFFF, guard = 0x1234;
  for (const int32_t dtype : kStoredDtypes) {
    for (const int64_t dim : {1, 15, 64, 80}) {
      const heed_problem p =
          MakeProblem(2, 3, 1, 21, 101, dim, dim, HEED_CAUSAL_BOTTOM_RIGHT);
      const StoredCase c = Store(NormalCase(p), dtype);
      // q padded, k token-major with odd gaps, v backwards, out padded.
      GuardedWords q({2, 3, 21, dim},
                     {3 * 21 * (dim + 3) + 11, 21 * (dim + 3), dim + 3}, nan);
      GuardedWords k({2, 1, 101, dim}, {101 * (dim + 1), dim, dim + 1}, nan);
      GuardedWords v({2, 1, 101, dim}, {-101 * dim, 101 * dim, -dim}, nan);
      GuardedWords out({2, 3, 21, dim},
                       {21 * 3 * (dim + 5), dim + 5, 3 * (dim + 5)}, guard);
      q.Set(c.q);
      k.Set(c.k);
      v.Set(c.v);
      for (const Settings& settings : EverySettings()) {
        Result got;
        std::vector<uint16_t> dense;
        heed_call call = StoredCall(c, &dense, &got.lse);
        call.q = q.Input();
        call.k = k.Input();
        call.v = v.Input();
        call.out = out.Output();
        ASSERT_EQ(RunCall(c.problem, call, settings), HEED_OK)
            << heed_last_error();
        got.out = ValuesOf(dtype, out.Dense());
        ASSERT_EQ(Difference(got, RunStored(c, settings)), "")
            << NameOf(c, settings);
        ASSERT_TRUE(out.GuardsAreIntact()) << NameOf(c, settings);
      }
      EXPECT_EQ(q.Dense(), c.q);
      EXPECT_EQ(k.Dense(), c.k);
      EXPECT_EQ(v.Dense(), c.v);
    }
  }
}

TEST(Dtype, TensorsMayEndOrBeginAtANoAccessPage) {
  for (const int32_t dtype : kStoredDtypes) {
    for (const bool fence_after : {true, false}) {
      for (const int64_t len_k : {1, 31, 33, 48, 70, 503}) {
        for (const int64_t dim : {1, 7, 64, 80}) {
          const StoredCase c = Store(
              NormalCase(MakeProblem(1, 2, 1, 5, len_k, dim, dim)), dtype);
          for (const Settings& settings : EverySettings()) {
            Result got;
            std::vector<uint16_t> dense;
            heed_call call = StoredCall(c, &dense, &got.lse);
            FencedBuffer<uint16_t> q(c.q, fence_after), k(c.k, fence_after);
            FencedBuffer<uint16_t> v(c.v, fence_after), out(dense, fence_after);
            call.q.data = q.data();
            call.k.data = k.data();
            call.v.data = v.data();
            call.out.data = out.data();
            ASSERT_EQ(RunCall(c.problem, call, settings), HEED_OK)
                << heed_last_error();
            std::copy_n(out.data(), dense.size(), dense.begin());
            got.out = ValuesOf(dtype, dense);
            ASSERT_EQ(Difference(got, RunStored(c, settings)), "")
                << NameOf(c, settings);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace heed::test
