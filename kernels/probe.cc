// What the machine could do at best, for every SIMD target. See probe.h.
#include "kernels/probe.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/probe.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

// Highway's own headers come after foreach_target.h.
#include "hwy/highway.h"
#include "kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Twelve chains: two pipes of four cycles' latency need eight. Each starts from
// a value of its own, read from memory: g++ merges chains that it can see to be
// equal, and then reports half as much again (disassembly: 12 vfmadd per
// iteration; the bench's disassembly test counts them).
constexpr size_t kChains = 12;

double PeakFma(size_t iterations, float* sink) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const V start = hn::Iota(d, *sink);
  const V m = hn::Set(d, 0.999f), c = hn::Set(d, 0.001f);
  V a0 = start, a1 = hn::Add(a0, c), a2 = hn::Add(a1, c), a3 = hn::Add(a2, c);
  V a4 = hn::Add(a3, c), a5 = hn::Add(a4, c), a6 = hn::Add(a5, c),
    a7 = hn::Add(a6, c);
  V a8 = hn::Add(a7, c), a9 = hn::Add(a8, c), a10 = hn::Add(a9, c),
    a11 = hn::Add(a10, c);
  for (size_t i = 0; i < iterations; ++i) {
    a0 = hn::MulAdd(a0, m, c);
    a1 = hn::MulAdd(a1, m, c);
    a2 = hn::MulAdd(a2, m, c);
    a3 = hn::MulAdd(a3, m, c);
    a4 = hn::MulAdd(a4, m, c);
    a5 = hn::MulAdd(a5, m, c);
    a6 = hn::MulAdd(a6, m, c);
    a7 = hn::MulAdd(a7, m, c);
    a8 = hn::MulAdd(a8, m, c);
    a9 = hn::MulAdd(a9, m, c);
    a10 = hn::MulAdd(a10, m, c);
    a11 = hn::MulAdd(a11, m, c);
  }
  const V s0 = hn::Add(hn::Add(a0, a1), hn::Add(a2, a3));
  const V s1 = hn::Add(hn::Add(a4, a5), hn::Add(a6, a7));
  const V s2 = hn::Add(hn::Add(a8, a9), hn::Add(a10, a11));
  *sink = hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, hn::Add(s1, s2))));
  return 2.0 * static_cast<double>(kChains * hn::Lanes(d)) *
         static_cast<double>(iterations);
}

double ReadFloats(const float* data, size_t count, float* sink) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0,
    s7 = s0;
  size_t i = 0;
  for (; i + 8 * lanes <= count; i += 8 * lanes) {
    const float* HWY_RESTRICT p = data + i;
    s0 = hn::Add(s0, hn::LoadU(d, p));
    s1 = hn::Add(s1, hn::LoadU(d, p + lanes));
    s2 = hn::Add(s2, hn::LoadU(d, p + 2 * lanes));
    s3 = hn::Add(s3, hn::LoadU(d, p + 3 * lanes));
    s4 = hn::Add(s4, hn::LoadU(d, p + 4 * lanes));
    s5 = hn::Add(s5, hn::LoadU(d, p + 5 * lanes));
    s6 = hn::Add(s6, hn::LoadU(d, p + 6 * lanes));
    s7 = hn::Add(s7, hn::LoadU(d, p + 7 * lanes));
  }
  const V s = hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)),
                      hn::Add(hn::Add(s4, s5), hn::Add(s6, s7)));
  *sink += hn::GetLane(hn::SumOfLanes(d, s));
  return static_cast<double>(i) * sizeof(float);
}

double Canary(float* buffer, size_t repetitions) {
  const hn::ScalableTag<float> d;
  const size_t panel = kPanelVecs * hn::Lanes(d);
  // Rows of m and l ahead of the scores; weights of one round are scores of the
  // next.
  float* m = buffer;
  float* l = buffer + panel;
  float* s = buffer + 2 * panel;
  const size_t keys = (kCanaryFloats - 2 * panel) / panel;
  for (size_t i = 0; i < kCanaryFloats; ++i) buffer[i] = 0.0f;
  // Far below the maximum a weight is tiny, so as a score about 0 again: rounds
  // stay alike.
  for (size_t i = 0; i < panel; ++i) m[i] = 100.0f;
  for (size_t n = 0; n < repetitions; ++n)
    WeighStep<kPanelVecs>(d, s, panel, hn::Lanes(d), keys, m, l);
  return static_cast<double>(keys * panel) * static_cast<double>(repetitions);
}

Probes MakeProbes() {
  return {hwy::TargetName(HWY_TARGET), &PeakFma, &ReadFloats, &Canary};
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(MakeProbes);

Probes GetProbes(int64_t target) {
  hwy::ChosenTarget chosen;
  chosen.Update(target);
  static_cast<void>(chosen);  // unused where only one target is compiled
#if (HWY_TARGETS & (HWY_TARGETS - 1)) == 0
  return HWY_STATIC_DISPATCH(MakeProbes)();
#else
  return HWY_DISPATCH_TABLE(MakeProbes)[chosen.GetIndex()]();
#endif
}

#define HEED_TEXT_OF(x) #x
#define HEED_VERSION_OF(major, minor, patch) \
  HEED_TEXT_OF(major) "." HEED_TEXT_OF(minor) "." HEED_TEXT_OF(patch)

const char* HighwayVersion() {
  return HEED_VERSION_OF(HWY_MAJOR, HWY_MINOR, HWY_PATCH);
}

}  // namespace heed
#endif  // HWY_ONCE
