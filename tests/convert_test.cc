// The storage types' conversions, on every SIMD target and in the tuner:
// widening is exact and narrowing is to nearest even, bit for bit.
//
// Through the public interface no average leaves the range of its values, so
// the kernels' own functions are called.
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/convert_test.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

// Highway's own headers come after foreach_target.h.
#include "hwy/highway.h"
#include "kernels/convert-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

void WidenPatterns(bool f16, const uint16_t* from, size_t count, float* to) {
  if (f16) {
    Widen(reinterpret_cast<const F16*>(from), count, to);
  } else {
    Widen(reinterpret_cast<const BF16*>(from), count, to);
  }
}

// `count` is a multiple of every target's lanes.
void NarrowPatterns(bool f16, const float* from, size_t count, uint16_t* to) {
  const hn::ScalableTag<float> d;
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto x = hn::LoadU(d, from + i);
    if (f16) {
      StoreAs(d, x, reinterpret_cast<F16*>(to + i));
    } else {
      StoreAs(d, x, reinterpret_cast<BF16*>(to + i));
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "runtime/targets.h"
#include "tests/input_families.h"
#include "tests/special_values.h"
#include "tests/stored_case.h"
#include "tune/storage.h"

namespace heed {
HWY_EXPORT(WidenPatterns);
HWY_EXPORT(NarrowPatterns);
namespace test {
namespace {

struct Conversions {
  std::string name;
  std::function<void(const uint16_t*, size_t, float*)> widen;
  std::function<void(const float*, size_t, uint16_t*)> narrow;
};

// Of every target that runs here, and the tuner's.
std::vector<Conversions> AllConversions(int32_t dtype) {
  using namespace std::placeholders;
  const bool f16 = dtype == HEED_F16;
  std::vector<Conversions> all;
  for (const int64_t target : RunnableTargets()) {
    hwy::ChosenTarget chosen;
    chosen.Update(target);
    static_cast<void>(chosen);  // unused where only one target is compiled
#if (HWY_TARGETS & (HWY_TARGETS - 1)) == 0
    const auto widen = &HWY_STATIC_DISPATCH(WidenPatterns);
    const auto narrow = &HWY_STATIC_DISPATCH(NarrowPatterns);
#else
    const auto widen = HWY_DISPATCH_TABLE(WidenPatterns)[chosen.GetIndex()];
    const auto narrow = HWY_DISPATCH_TABLE(NarrowPatterns)[chosen.GetIndex()];
#endif
    all.push_back({hwy::TargetName(target), std::bind(widen, f16, _1, _2, _3),
                   std::bind(narrow, f16, _1, _2, _3)});
  }
  all.push_back({"tuner", std::bind(&Widen, dtype, _1, _2, _3),
                 std::bind(&Narrow, dtype, _1, _2, _3)});
  return all;
}

std::vector<uint16_t> AllPatterns() {
  std::vector<uint16_t> patterns;
  for (int bits = 0; bits < 0x10000; ++bits) {
    patterns.push_back(static_cast<uint16_t>(bits));
  }
  return patterns;
}

TEST(Convert, EveryPatternWidensExactly) {
  const std::vector<uint16_t> patterns = AllPatterns();
  for (const int32_t dtype : kStoredDtypes) {
    const std::vector<float> want = ValuesOf(dtype, patterns);
    for (const Conversions& conversions : AllConversions(dtype)) {
      // Counts and places that leave every remainder of a vector.
      for (size_t first = 0; first < 40; ++first) {
        std::vector<float> got(patterns.size() - first);
        conversions.widen(patterns.data() + first, got.size(), got.data());
        for (size_t i = 0; i < got.size(); ++i) {
          ASSERT_TRUE(SameBits(got[i], want[first + i]))
              << conversions.name << " dtype " << dtype << " pattern "
              << first + i;
        }
      }
    }
  }
}

// All values of the dtype, all ties between neighbours, what lies next to
// either, the ends of the range, and random floats of every exponent.
std::vector<float> FloatsToNarrow(int32_t dtype) {
  std::vector<float> floats = {
      kInfinity, -kInfinity, 65504.0f, 65519.99f, 65520.0f,  65536.0f,
      1e38f,     FLT_MAX,    -FLT_MAX, FLT_MIN,   0x1p-149f, 0x1p-24f,
      0x1p-25f,  0x1.8p-25f, 0x1p-26f, 0x1p-133f, 0x1p-134f};
  const std::vector<float> values = ValuesOf(dtype, AllPatterns());
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    // After the largest comes what would be next without an infinity.
    const double next = std::isfinite(values[i + 1])
                            ? values[i + 1]
                            : 2.0 * values[i] - values[i - 1];
    const float tie = static_cast<float>((values[i] + next) / 2);
    for (const float x : {values[i], tie}) {
      floats.push_back(x);
      floats.push_back(std::nextafter(x, kInfinity));
      floats.push_back(std::nextafter(x, -kInfinity));
    }
  }
  Random random(16);
  for (int i = 0; i < 1000000; ++i) {
    const uint32_t bits = static_cast<uint32_t>(random.Next());
    float x;
    std::memcpy(&x, &bits, sizeof(x));
    floats.push_back(x);
  }
  while (floats.size() % 64 != 0) floats.push_back(0);
  return floats;
}

TEST(Convert, NarrowingIsToNearestEven) {
  for (const int32_t dtype : kStoredDtypes) {
    const std::vector<float> floats = FloatsToNarrow(dtype);
    const std::vector<uint16_t> want = NearestTo(dtype, floats);
    for (const Conversions& conversions : AllConversions(dtype)) {
      std::vector<uint16_t> got(floats.size());
      conversions.narrow(floats.data(), floats.size(), got.data());
      for (size_t i = 0; i < got.size(); ++i) {
        // Any NaN for a NaN.
        if (std::isnan(floats[i]) && std::isnan(ValueOf(dtype, got[i]))) {
          continue;
        }
        ASSERT_EQ(got[i], want[i])
            << conversions.name << " dtype " << dtype << " of " << floats[i];
      }
    }
  }
}

}  // namespace
}  // namespace test
}  // namespace heed
#endif  // HWY_ONCE
