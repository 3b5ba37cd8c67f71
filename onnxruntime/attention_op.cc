// RegisterCustomOps(), by which ONNX Runtime learns of heed.Attention:
// SessionOptions.register_custom_ops_library("libheed_ort.so").
#include <array>
#include <exception>

#include "onnxruntime/attention_kernel.h"

namespace heed_ort {
namespace {

// ONNX Runtime wants one operator for each type, all of one name.
class AttentionOp
    : public Ort::CustomOpBase<AttentionOp, AttentionKernel, true> {
 public:
  AttentionOp(heed_dtype dtype, ONNXTensorElementDataType type)
      : dtype_(dtype), type_(type) {}

  const char* GetName() const { return "Attention"; }

  size_t GetInputTypeCount() const { return kInputs; }
  ONNXTensorElementDataType GetInputType(size_t index) const {
    // A mask is of one of two types, so it is of any and looked at when it
    // comes.
    if (index == kMask) return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    if (index == kNonpad) return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
    return type_;
  }
  OrtCustomOpInputOutputCharacteristic GetInputCharacteristic(
      size_t index) const {
    return index <= kV ? INPUT_OUTPUT_REQUIRED : INPUT_OUTPUT_OPTIONAL;
  }

  size_t GetOutputTypeCount() const { return kOutputs; }
  ONNXTensorElementDataType GetOutputType(size_t) const { return type_; }
  OrtCustomOpInputOutputCharacteristic GetOutputCharacteristic(
      size_t index) const {
    return index == kY ? INPUT_OUTPUT_REQUIRED : INPUT_OUTPUT_OPTIONAL;
  }

  OrtStatusPtr CreateKernelV2(const OrtApi&, const OrtKernelInfo* info,
                              void** kernel) const {
    return Guarded(
        [&] { *kernel = new AttentionKernel(ReadAttributes(info), dtype_); });
  }

  // Called by the base class through KernelComputeV2.
  template <typename Function>
  static OrtStatusPtr Guarded(const Function& function) noexcept {
    try {
      function();
      return nullptr;
    } catch (const Ort::Exception& error) {
      return Ort::GetApi().CreateStatus(error.GetOrtErrorCode(), error.what());
    } catch (const std::exception& error) {
      return Ort::GetApi().CreateStatus(ORT_FAIL, error.what());
    }
  }

 private:
  heed_dtype dtype_;
  ONNXTensorElementDataType type_;
};

}  // namespace

OrtStatusPtr AttentionKernel::ComputeV2(OrtKernelContext* context) {
  return AttentionOp::Guarded([&] { Compute(context); });
}

}  // namespace heed_ort

// ORT_EXPORT is nothing on Linux, and we hide what is not said to be seen.
extern "C" __attribute__((visibility("default"))) OrtStatus* ORT_API_CALL
RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* api) {
  using heed_ort::AttentionOp;
  const OrtApi* table = api->GetApi(ORT_API_VERSION);
  if (table == nullptr) {
    // There is no table, so no other way to say it.
    const OrtApi* oldest = api->GetApi(1);
    return oldest->CreateStatus(
        ORT_NOT_IMPLEMENTED,
        "libheed_ort was built for a newer ONNX Runtime than this");
  }
  Ort::InitApi(table);
  return AttentionOp::Guarded([&] {
    // Sessions keep pointers to these.
    static const std::array<AttentionOp, 3> ops = {
        AttentionOp(HEED_F32, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT),
        AttentionOp(HEED_F16, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16),
        AttentionOp(HEED_BF16, ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16)};
    static const Ort::CustomOpDomain domain = [] {
      Ort::CustomOpDomain made("heed");
      for (const AttentionOp& op : ops) made.Add(&op);
      return made;
    }();
    Ort::UnownedSessionOptions(options).Add(domain);
  });
}
