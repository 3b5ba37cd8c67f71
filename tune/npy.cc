#include "tune/npy.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "tune/npy_header.h"

namespace heed {
namespace {

// The file's bytes are the tensor's bytes only on such a machine.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "npy.cc copies little-endian data as they are");

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

const struct {
  NpyType type;
  const char* descr;
  const char* name;
  size_t bytes;
} kTypes[] = {{NpyType::kFloat32, "<f4", "float32", 4},
              {NpyType::kFloat16, "<f2", "float16", 2},
              {NpyType::kUint16, "<u2", "uint16", 2}};

// '=' is "this machine's order", which is little.
bool FindType(const std::string& descr, NpyType* type) {
  for (const auto& known : kTypes) {
    const std::string native = std::string("=") + (known.descr + 1);
    if (descr != known.descr && descr != native) continue;
    *type = known.type;
    return true;
  }
  return false;
}

// Which dtype it is, if it is none of those that are read.
std::string WhyNotRead(const std::string& descr) {
  if (descr.empty()) return "an empty dtype";
  if (descr[0] == '>') return "big-endian data (dtype '" + descr + "')";
  if (descr == "|O") return "object dtype (Python pickles)";
  return "dtype '" + descr + "' (expected '<f4', '<f2', or '<u2' for bfloat16)";
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + ")";
}

bool Read(std::FILE* file, size_t rank, NpyTensor* tensor, std::string* why) {
  struct stat status;
  if (fstat(fileno(file), &status) != 0) {
    *why = std::strerror(errno);
    return false;
  }
  if (!S_ISREG(status.st_mode)) {
    *why = "not a regular file";
    return false;
  }
  const int64_t file_bytes = status.st_size;
  std::string head(kMaxNpyHeaderBytes, '\0');
  head.resize(std::fread(&head[0], 1, head.size(), file));
  NpyHeader header;
  if (!ParseNpyHeader(head, &header, why)) return false;
  if (!FindType(header.descr, &tensor->type)) {
    *why = WhyNotRead(header.descr);
    return false;
  }
  const size_t element_bytes = kTypes[static_cast<size_t>(tensor->type)].bytes;
  if (header.fortran_order) {
    *why = "Fortran order (expected C order: numpy.ascontiguousarray)";
    return false;
  }
  if (header.shape.size() != rank) {
    *why = std::to_string(header.shape.size()) + " dimensions " +
           ShapeText(header.shape) + " (expected " + std::to_string(rank) + ")";
    return false;
  }
  const int64_t count = NpyElementCount(header.shape);
  if (count < 0 || count > INT64_MAX / 4) {
    *why = "shape " + ShapeText(header.shape) + " overflows";
    return false;
  }
  const int64_t want_bytes = count * static_cast<int64_t>(element_bytes);
  const int64_t have_bytes =
      file_bytes - static_cast<int64_t>(header.header_bytes);
  if (have_bytes != want_bytes) {
    *why = std::string(have_bytes < want_bytes ? "truncated data"
                                               : "trailing bytes") +
           ": shape " + ShapeText(header.shape) + " takes " +
           std::to_string(want_bytes) + " bytes, the file has " +
           std::to_string(have_bytes);
    return false;
  }
  if (std::fseek(file, static_cast<long>(header.header_bytes), SEEK_SET) != 0) {
    *why = std::strerror(errno);
    return false;
  }
  tensor->shape = header.shape;
  const auto elements = static_cast<size_t>(count);
  tensor->Resize(elements);
  if (count != 0 && std::fread(tensor->elements(), element_bytes, elements,
                               file) != elements) {
    *why = "the file could not be read to its end";
    return false;
  }
  return true;
}

}  // namespace

void NpyTensor::Resize(size_t count) {
  const bool wide = type == NpyType::kFloat32;
  data.resize(wide ? count : 0);
  words.resize(wide ? 0 : count);
}

void* NpyTensor::elements() {
  if (type == NpyType::kFloat32) return data.data();
  return words.data();
}

const void* NpyTensor::elements() const {
  return const_cast<NpyTensor*>(this)->elements();
}

const char* NpyTypeName(NpyType type) {
  return kTypes[static_cast<size_t>(type)].name;
}

bool ReadNpy(const std::string& path, size_t rank, NpyTensor* tensor,
             std::string* why) {
  // Not fopen(): that would wait for somebody to write to a FIFO.
  const int descriptor = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  const std::unique_ptr<std::FILE, Close> file(
      descriptor < 0 ? nullptr : fdopen(descriptor, "rb"));
  std::string reason;
  if (file == nullptr) {
    reason = std::strerror(errno);
  } else {
    try {
      if (Read(file.get(), rank, tensor, &reason)) return true;
    } catch (const std::bad_alloc&) {
      reason = "out of memory";
    }
  }
  *why = path + ": " + reason;
  return false;
}

bool StageNpy(const std::string& path, NpyType type,
              const std::vector<int64_t>& shape, const void* data,
              StagedFile* file, std::string* why) {
  const auto& stored = kTypes[static_cast<size_t>(type)];
  const std::string header = MakeNpyHeader(stored.descr, shape);
  const size_t count = static_cast<size_t>(NpyElementCount(shape));
  return file->Open(path, why) &&
         file->Append(header.data(), header.size(), why) &&
         file->Append(data, count * stored.bytes, why);
}

}  // namespace heed
