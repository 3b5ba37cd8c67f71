#include "tune/npy.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

#include "tune/npy_header.h"
#include "tune/printable.h"

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
              {NpyType::kUint16, "<u2", "uint16", 2},
              {NpyType::kBool, "|b1", "bool", 1},
              {NpyType::kUint8, "|u1", "uint8", 1},
              {NpyType::kInt32, "<i4", "int32", 4},
              {NpyType::kInt64, "<i8", "int64", 8}};

size_t ElementBytes(NpyType type) {
  return kTypes[static_cast<size_t>(type)].bytes;
}

// '=' is "this machine's order", which is little.
bool FindType(const std::string& descr, const std::vector<NpyType>& wanted,
              NpyType* type) {
  for (const auto& known : kTypes) {
    const std::string native = std::string("=") + (known.descr + 1);
    if (descr != known.descr && descr != native) continue;
    *type = known.type;
    return std::count(wanted.begin(), wanted.end(), known.type) != 0;
  }
  return false;
}

// "float32, float16 or uint16 for bfloat16"
std::string TypesText(const std::vector<NpyType>& types) {
  std::string text;
  for (size_t i = 0; i < types.size(); ++i) {
    if (i != 0) text += i + 1 == types.size() ? " or " : ", ";
    text += NpyTypeName(types[i]);
    if (types[i] == NpyType::kUint16) text += " for bfloat16";
  }
  return text;
}

// Which dtype it is, if it is none of those that are wanted.
std::string WhyNotRead(const std::string& descr,
                       const std::vector<NpyType>& wanted) {
  if (descr.empty()) return "an empty dtype";
  if (descr[0] == '>') return "big-endian data (dtype '" + descr + "')";
  if (descr == "|O") return "object dtype (Python pickles)";
  return "dtype '" + descr + "' (expected " + TypesText(wanted) + ")";
}

std::string RankText(const NpyForm& form) {
  std::string text = std::to_string(form.min_rank);
  if (form.max_rank != form.min_rank) {
    text += " to " + std::to_string(form.max_rank);
  }
  return text;
}

bool Read(std::FILE* file, const NpyForm& form, NpyTensor* tensor,
          std::string* why) {
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
  if (!FindType(header.descr, form.types, &tensor->type)) {
    *why = WhyNotRead(header.descr, form.types);
    return false;
  }
  const size_t element_bytes = ElementBytes(tensor->type);
  if (header.fortran_order) {
    *why = "Fortran order (expected C order: numpy.ascontiguousarray)";
    return false;
  }
  const size_t rank = header.shape.size();
  if (rank < form.min_rank || rank > form.max_rank) {
    *why = std::to_string(rank) + " dimensions " + ShapeText(header.shape) +
           " (expected " + RankText(form) + ")";
    return false;
  }
  const int64_t count = NpyElementCount(header.shape);
  if (count < 0 || count > INT64_MAX / 8) {
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
  if (count != 0 && std::fread(tensor->bytes.data(), element_bytes, elements,
                               file) != elements) {
    *why = "the file could not be read to its end";
    return false;
  }
  return true;
}

}  // namespace

void NpyTensor::Resize(size_t count) {
  size_t size;
  if (__builtin_mul_overflow(count, ElementBytes(type), &size)) {
    throw std::bad_alloc();
  }
  bytes.resize(size);
}

size_t NpyTensor::count() const { return bytes.size() / ElementBytes(type); }

const char* NpyTypeName(NpyType type) {
  return kTypes[static_cast<size_t>(type)].name;
}

bool ReadNpy(const std::string& path, const NpyForm& form, NpyTensor* tensor,
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
      if (Read(file.get(), form, tensor, &reason)) return true;
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
