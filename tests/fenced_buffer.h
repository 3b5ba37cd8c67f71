// A copy of some bytes that ends, or begins, at a page that may not be touched.
#ifndef HEED_TESTS_FENCED_BUFFER_H_
#define HEED_TESTS_FENCED_BUFFER_H_

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <vector>

namespace heed::test {

template <typename T>
class FencedBuffer {
 public:
  FencedBuffer(const std::vector<T>& data, bool fence_after) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = data.size() * sizeof(T);
    const size_t pages = (bytes + page - 1) / page * page;
    size_ = pages + 2 * page;
    base_ = mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(base_, MAP_FAILED);
    char* inside = static_cast<char*>(base_) + page;
    EXPECT_EQ(mprotect(inside, pages, PROT_READ | PROT_WRITE), 0);
    data_ = reinterpret_cast<T*>(fence_after ? inside + pages - bytes : inside);
    std::memcpy(data_, data.data(), bytes);
  }
  ~FencedBuffer() { munmap(base_, size_); }
  FencedBuffer(const FencedBuffer&) = delete;
  FencedBuffer& operator=(const FencedBuffer&) = delete;
  T* data() { return data_; }

 private:
  void* base_;
  size_t size_;
  T* data_;
};

}  // namespace heed::test

#endif  // HEED_TESTS_FENCED_BUFFER_H_
