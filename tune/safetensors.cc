#include "tune/safetensors.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "tune/printable.h"
#include "tune/strict_json.h"

namespace heed {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr size_t kMaxRank = 32;
// An object of objects with arrays in them.
constexpr int kHeaderDepth = 3;

const struct {
  const char* name;
  int64_t bits;
} kTensorTypes[] = {{"BOOL", 8},    {"U8", 8},      {"I8", 8},   {"F8_E5M2", 8},
                    {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F4", 4},   {"F6_E2M3", 6},
                    {"F6_E3M2", 6}, {"I16", 16},    {"U16", 16}, {"F16", 16},
                    {"BF16", 16},   {"I32", 32},    {"U32", 32}, {"F32", 32},
                    {"C64", 64},    {"F64", 64},    {"I64", 64}, {"U64", 64}};

// Bits of an element; 0 if there is no such type.
int64_t TypeBits(const std::string& name) {
  for (const auto& type : kTensorTypes) {
    if (name == type.name) return type.bits;
  }
  return 0;
}

// Reads one tensor's entry of the header.
class EntryReader {
 public:
  EntryReader(const std::string& name, const StrictJson& entry,
              size_t data_begin, size_t data_bytes, std::string* why)
      : name_(name),
        entry_(entry),
        data_begin_(data_begin),
        data_bytes_(data_bytes),
        why_(why) {}

  bool Read(StoredTensor* tensor) {
    tensor->name = name_;
    return Dtype(&tensor->dtype) && Shape(&tensor->shape) && Place(tensor) &&
           Size(*tensor);
  }

 private:
  bool Fail(const std::string& reason) {
    *why_ = "tensor " + Printable(name_) + ": " + reason;
    return false;
  }

  bool Dtype(std::string* dtype) {
    if (!entry_.is_object()) {
      return Fail("expected an object with dtype, shape and data_offsets");
    }
    const auto found = entry_.find("dtype");
    if (found == entry_.end() || !found->is_string()) {
      return Fail("dtype is missing or no string");
    }
    *dtype = found->get<std::string>();
    if (TypeBits(*dtype) == 0) {
      return Fail("dtype \"" + Printable(*dtype) + "\" is unknown");
    }
    return true;
  }

  bool Shape(std::vector<int64_t>* shape) {
    const auto found = entry_.find("shape");
    if (found == entry_.end() || !found->is_array()) {
      return Fail("shape is missing or no array");
    }
    if (found->size() > kMaxRank) {
      return Fail("shape has " + std::to_string(found->size()) +
                  " dimensions; expected at most " + std::to_string(kMaxRank));
    }
    shape->resize(found->size());
    for (size_t i = 0; i < shape->size(); ++i) {
      if (!IsCount((*found)[i], &(*shape)[i])) {
        return Fail("dimension " + std::to_string(i) + " of shape is " +
                    Printable((*found)[i].dump()) +
                    "; expected an integer from 0 to 2^63 - 1");
      }
    }
    return true;
  }

  bool Place(StoredTensor* tensor) {
    const auto found = entry_.find("data_offsets");
    if (found == entry_.end() || !found->is_array() || found->size() != 2) {
      return Fail("data_offsets are missing or not two");
    }
    int64_t begin, end;
    if (!IsCount((*found)[0], &begin) || !IsCount((*found)[1], &end) ||
        begin > end) {
      return Fail("data_offsets are " + Printable(found->dump()) +
                  "; expected 0 <= begin <= end");
    }
    if (static_cast<uint64_t>(end) > data_bytes_) {
      return Fail("truncated: data_offsets end at " + std::to_string(end) +
                  ", the file's data at " + std::to_string(data_bytes_));
    }
    tensor->begin = data_begin_ + static_cast<size_t>(begin);
    tensor->end = data_begin_ + static_cast<size_t>(end);
    return true;
  }

  // Whether shape and dtype take the bytes that are there.
  bool Size(const StoredTensor& tensor) {
    int64_t bits = TypeBits(tensor.dtype);
    bool overflows = false;
    // A dimension of 0 makes any product 0.
    const bool empty =
        std::count(tensor.shape.begin(), tensor.shape.end(), 0) != 0;
    for (const int64_t dimension : tensor.shape) {
      overflows = overflows || __builtin_mul_overflow(bits, dimension, &bits);
    }
    if (overflows && !empty) {
      return Fail("shape " + ShapeText(tensor.shape) + " overflows");
    }
    if (empty) bits = 0;
    const size_t bytes = tensor.end - tensor.begin;
    if (bits % 8 != 0 || static_cast<uint64_t>(bits / 8) != bytes) {
      return Fail("shape " + ShapeText(tensor.shape) + " of " + tensor.dtype +
                  " takes " + std::to_string(bits / 8) +
                  (bits % 8 == 0 ? "" : " and a part") +
                  " bytes, data_offsets hold " + std::to_string(bytes));
    }
    return true;
  }

  const std::string& name_;
  const StrictJson& entry_;
  const size_t data_begin_, data_bytes_;
  std::string* why_;
};

// Whether `metadata` is what the format allows: texts by name.
bool IsMetadata(const StrictJson& metadata) {
  return metadata.is_object() &&
         std::all_of(metadata.begin(), metadata.end(),
                     [](const StrictJson& text) { return text.is_string(); });
}

// Sorts the tensors by place, and demands that they cover [begin, end) once.
bool Cover(size_t begin, size_t end, std::vector<StoredTensor>* tensors,
           std::string* why) {
  std::sort(tensors->begin(), tensors->end(),
            [](const StoredTensor& a, const StoredTensor& b) {
              return std::tie(a.begin, a.end, a.name) <
                     std::tie(b.begin, b.end, b.name);
            });
  size_t next = begin;
  const StoredTensor* before = nullptr;
  for (const StoredTensor& tensor : *tensors) {
    if (tensor.begin < next) {
      *why = "tensor " + Printable(tensor.name) +
             ": its data overlap those of " + Printable(before->name) +
             ", at data offset " + std::to_string(tensor.begin - begin);
      return false;
    }
    if (tensor.begin > next) {
      *why = "tensor " + Printable(tensor.name) + ": a hole of " +
             std::to_string(tensor.begin - next) +
             " bytes that belong to no tensor lies before its data";
      return false;
    }
    next = tensor.end;
    before = &tensor;
  }
  if (next != end) {
    *why = std::to_string(end - next) +
           " bytes at the end of the file belong to no tensor";
    return false;
  }
  return true;
}

}  // namespace

bool ParseSafetensors(const unsigned char* bytes, size_t size,
                      std::vector<StoredTensor>* tensors, std::string* why) {
  tensors->clear();
  if (size < kLengthBytes) {
    *why = "truncated: " + std::to_string(size) +
           " bytes, and the header's length alone takes 8";
    return false;
  }
  uint64_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) length = length << 8 | bytes[i];
  if (length > kMaxSafetensorsHeaderBytes) {
    *why = "the header claims " + std::to_string(length) + " bytes (at most " +
           std::to_string(kMaxSafetensorsHeaderBytes) +
           " are read): no .safetensors file, or a damaged one";
    return false;
  }
  if (length > size - kLengthBytes) {
    *why = "truncated: the header claims " + std::to_string(length) +
           " bytes, the file has " + std::to_string(size - kLengthBytes) +
           " after its length";
    return false;
  }
  const char* text = reinterpret_cast<const char*>(bytes + kLengthBytes);
  const auto text_size = static_cast<size_t>(length);
  StrictJson header;
  std::string reason;
  if (!ParseStrictJson(text, text_size, kHeaderDepth, &header, &reason)) {
    *why = "header: " + reason;
    return false;
  }
  if (!header.is_object() || text[0] != '{') {
    *why = "header: expected a JSON object";
    return false;
  }
  const size_t data_begin = kLengthBytes + text_size;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      if (IsMetadata(entry)) continue;
      *why = "header: __metadata__ is no object of strings";
      return false;
    }
    StoredTensor tensor;
    if (!EntryReader(name, entry, data_begin, size - data_begin, why)
             .Read(&tensor)) {
      return false;
    }
    tensors->push_back(std::move(tensor));
  }
  return Cover(data_begin, size, tensors, why);
}

}  // namespace heed
