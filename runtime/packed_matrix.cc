#include "runtime/packed_matrix.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <type_traits>

#include "runtime/convert.h"
#include "runtime/counted_tasks.h"
#include "runtime/problem.h"

namespace heed {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

// A checkpoint's element, at any address.
template <typename T>
T Load(const void* data, size_t index) {
  T x;
  std::memcpy(&x, static_cast<const char*>(data) + index * sizeof(T),
              sizeof(T));
  return x;
}

template <typename From, typename To>
To Convert(From x) {
  if constexpr (std::is_same_v<From, To>) {
    return x;
  } else {
    static_assert(std::is_same_v<To, float>);
    return ToFloat(x);
  }
}

// One part in its place: a task is a chunk of inputs.
struct PartJob {
  const heed_matrix* matrix;
  size_t outputs;
  size_t first;  // its first column in the whole
  size_t stride;
  PackedMatrix* packed;
};

// Output by output, so that a matrix of [outputs, inputs] is read along its
// rows; the other layout's lines stay in the cache for the panel's columns.
template <typename From, typename To>
void PackChunk(const PartJob& job, size_t chunk) {
  const PackedMatrix& packed = *job.packed;
  const size_t begin = chunk * kInputChunk;
  const size_t inputs = std::min(kInputChunk, packed.inputs - begin);
  const size_t columns = packed.panel_columns;
  To* to = static_cast<To*>(packed.data.get()) + begin * packed.columns();
  const bool by_input = job.matrix->layout == HEED_LAYOUT_IN_OUT;
  const size_t input_step = by_input ? job.stride : 1;
  const size_t output_step = by_input ? 1 : job.stride;
  for (size_t output = 0; output < job.outputs; ++output) {
    const size_t column = job.first + output;
    To* run = to + column / columns * inputs * columns + column % columns;
    const size_t from = output * output_step + begin * input_step;
    for (size_t i = 0; i < inputs; ++i) {
      run[i * columns] = Convert<From, To>(
          Load<From>(job.matrix->data, from + i * input_step));
    }
  }
}

template <typename From>
CountedTask PackAs(bool widens) {
  static constexpr auto keep = [](const void* job, size_t, size_t chunk) {
    PackChunk<From, From>(*static_cast<const PartJob*>(job), chunk);
  };
  static constexpr auto widen = [](const void* job, size_t, size_t chunk) {
    PackChunk<From, float>(*static_cast<const PartJob*>(job), chunk);
  };
  return widens ? CountedTask(widen) : CountedTask(keep);
}

CountedTask PackFor(int32_t dtype, DType to) {
  switch (KernelDType(dtype)) {
    case DType::kF16:
      return PackAs<F16>(to == DType::kF32);
    case DType::kBF16:
      return PackAs<BF16>(to == DType::kF32);
    default:
      return PackAs<float>(false);
  }
}

template <typename From>
void CopyAsFloat(const void* data, size_t count, float* to) {
  for (size_t i = 0; i < count; ++i) to[i] = ToFloat(Load<From>(data, i));
}

}  // namespace

std::unique_ptr<void, FreeMemory> AllocateWeights(size_t bytes) {
  const size_t unit = bytes >= kHugePage ? kHugePage : 64;
  const size_t size = (std::max<size_t>(bytes, 1) + unit - 1) / unit * unit;
  void* memory = std::aligned_alloc(unit, size);
  if (memory == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  // Advice: whether it is taken does not matter to the result.
  if (unit == kHugePage) madvise(memory, size, MADV_HUGEPAGE);
#endif
  return std::unique_ptr<void, FreeMemory>(memory);
}

heed_status PackMatrix(const MatrixPart* parts, size_t count, size_t inputs,
                       const TokenKernels& kernels, const heed_runner& runner,
                       size_t workers, PackedMatrix* packed) {
  packed->inputs = inputs;
  packed->outputs = 0;
  packed->dtype = KernelDType(parts[0].matrix->dtype);
  for (size_t i = 0; i < count; ++i) {
    packed->outputs += parts[i].outputs;
    if (parts[i].matrix->dtype != parts[0].matrix->dtype) {
      packed->dtype = DType::kF32;
    }
  }
  packed->panel_columns = kernels.panel_columns;
  packed->panels =
      (packed->outputs + packed->panel_columns - 1) / packed->panel_columns;
  const size_t element = packed->dtype == DType::kF32 ? 4 : 2;
  const size_t bytes = inputs * packed->columns() * element;
  packed->data = AllocateWeights(bytes);
  packed->bias = AllocateWeights(packed->columns() * sizeof(float));
  auto* bias = static_cast<float*>(packed->bias.get());
  std::memset(bias, 0, packed->columns() * sizeof(float));
  // Columns beyond the matrix; the rest is written below.
  if (packed->outputs % packed->panel_columns != 0) {
    std::memset(packed->data.get(), 0, bytes);
  }
  size_t first = 0;
  for (size_t i = 0; i < count; ++i) {
    const heed_matrix& matrix = *parts[i].matrix;
    const size_t dense =
        matrix.layout == HEED_LAYOUT_IN_OUT ? parts[i].outputs : inputs;
    const PartJob job = {
        &matrix, parts[i].outputs, first,
        matrix.stride == 0 ? dense : static_cast<size_t>(matrix.stride),
        packed};
    const heed_status status =
        RunCounted(runner, workers, (inputs + kInputChunk - 1) / kInputChunk,
                   PackFor(matrix.dtype, packed->dtype), &job);
    if (status != HEED_OK) return status;
    CopyVector(matrix.bias, parts[i].outputs, 0.0f, bias + first);
    first += parts[i].outputs;
  }
  return HEED_OK;
}

void CopyVector(const heed_vector& vector, size_t count, float value,
                float* to) {
  if (vector.data == nullptr) {
    std::fill_n(to, count, value);
    return;
  }
  switch (KernelDType(vector.dtype)) {
    case DType::kF16:
      return CopyAsFloat<F16>(vector.data, count, to);
    case DType::kBF16:
      return CopyAsFloat<BF16>(vector.data, count, to);
    default:
      return CopyAsFloat<float>(vector.data, count, to);
  }
}

}  // namespace heed
