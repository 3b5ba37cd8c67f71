// ggml's flash attention on the CPU, for alternate.py; driver.py has the
// protocol. Built apart from heed, where ggml and its headers are installed,
// by g++ -O2 -std=c++17 with -lggml -lggml-base.
//
// usage: ggml_attention [FOLDER]
//   FOLDER  where the libggml-cpu-*.so are, if not where ggml looks itself
//
// q and the result are float32, as ggml has them; k and v are of the problem's
// dtype. A causal mask is a tensor of float16. A token that is decoded has its
// group's heads as rows, so that k and v are read once.

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>
#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr uint16_t kHalfMinusInfinity = 0xFC00;

struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Problem {
  int64_t batch, heads_q, heads_kv, len_q, len_k, dim;
  bool causal;
  ggml_type type;

  explicit Problem(const std::string& text) {
    int end = 0;
    if (std::sscanf(text.c_str(),
                    "b%" SCNd64 "_hq%" SCNd64 "_hkv%" SCNd64 "_q%" SCNd64
                    "_k%" SCNd64 "_d%" SCNd64 "%n",
                    &batch, &heads_q, &heads_kv, &len_q, &len_k, &dim,
                    &end) == 6) {
      std::string rest = text.substr(static_cast<size_t>(end));
      causal = rest.rfind("_causal_", 0) == 0;
      if (causal) rest.erase(0, std::strlen("_causal"));
      type = rest == "_f32"    ? GGML_TYPE_F32
             : rest == "_f16"  ? GGML_TYPE_F16
             : rest == "_bf16" ? GGML_TYPE_BF16
                               : GGML_TYPE_COUNT;
      if (type != GGML_TYPE_COUNT) return;
    }
    throw Refused(text + ": only plain and causal problems of one head width");
  }
};

// The value of a key in a line of JSON as Python's json module writes it.
// Empty if there is none. Values have no quotes or backslashes inside.
std::string ValueOf(const std::string& line, const std::string& key) {
  const std::string mark = "\"" + key + "\": ";
  size_t begin = line.find(mark);
  if (begin == std::string::npos) return "";
  begin += mark.size();
  if (line[begin] == '"') {
    return line.substr(begin + 1, line.find('"', begin + 1) - begin - 1);
  }
  return line.substr(begin, line.find_first_of(",}", begin) - begin);
}

// ggml's CPU backend, and the threads it computes on.
class Cpu {
 public:
  explicit Cpu(const char* folder) {
    ggml_log_set([](ggml_log_level, const char* text,
                    void*) { std::fputs(text, stderr); },
                 nullptr);
    if (folder == nullptr) {
      ggml_backend_load_all();
    } else {
      ggml_backend_load_all_from_path(folder);
    }
    const ggml_backend_dev_t device =
        ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (device == nullptr) throw std::runtime_error("ggml has no CPU backend");
    registry_ = ggml_backend_dev_backend_reg(device);
    backend_ = ggml_backend_dev_init(device, nullptr);
  }

  ggml_backend_t backend() const { return backend_; }

  // A pool that stays: without OpenMP ggml makes threads anew for each call
  // otherwise.
  void SetThreads(int threads) {
    if (threads == threads_) return;
    threads_ = threads;
    Find<ggml_backend_set_n_threads_t>("ggml_backend_set_n_threads")(backend_,
                                                                     threads);
    const auto make =
        Find<decltype(&ggml_threadpool_new)>("ggml_threadpool_new");
    const auto end =
        Find<decltype(&ggml_threadpool_free)>("ggml_threadpool_free");
    const auto use = Find<decltype(&ggml_backend_cpu_set_threadpool)>(
        "ggml_backend_cpu_set_threadpool");
    ggml_threadpool_params params = ggml_threadpool_params_default(threads);
    // Threads that are done sleep, as it is heed's turn next: they would spin
    // for tens of milliseconds.
    params.poll = 0;
    const ggml_threadpool_t old = pool_;
    pool_ = make(&params);
    use(backend_, pool_);
    if (old != nullptr) end(old);
  }

 private:
  template <typename Function>
  Function Find(const char* name) const {
    void* const found = ggml_backend_reg_get_proc_address(registry_, name);
    if (found == nullptr) {
      throw std::runtime_error(std::string("ggml's CPU backend has no ") +
                               name);
    }
    return reinterpret_cast<Function>(found);
  }

  ggml_backend_reg_t registry_ = nullptr;
  ggml_backend_t backend_ = nullptr;
  ggml_threadpool_t pool_ = nullptr;
  int threads_ = 0;
};

struct Release {
  void operator()(ggml_context* context) const { ggml_free(context); }
  void operator()(ggml_backend_buffer* buffer) const {
    ggml_backend_buffer_free(buffer);
  }
};

// A problem's tensors, and the graph of the one operation on them.
class Attention {
 public:
  // `tensors`: a file of q, k and v, float32, one after another.
  Attention(const Problem& p, ggml_backend_t backend,
            const std::string& tensors)
      : backend_(backend) {
    const int64_t group = p.heads_q / p.heads_kv;
    const bool fold = p.len_q == 1;
    const int64_t rows = fold ? group : p.len_q;
    const int64_t heads = fold ? p.heads_kv : p.heads_q;
    context_.reset(ggml_init(
        {ggml_tensor_overhead() * 8 + ggml_graph_overhead(), nullptr, true}));
    ggml_context* const c = context_.get();
    ggml_tensor* const q =
        ggml_new_tensor_4d(c, GGML_TYPE_F32, p.dim, rows, heads, p.batch);
    ggml_tensor* const k =
        ggml_new_tensor_4d(c, p.type, p.dim, p.len_k, p.heads_kv, p.batch);
    ggml_tensor* const v =
        ggml_new_tensor_4d(c, p.type, p.dim, p.len_k, p.heads_kv, p.batch);
    ggml_tensor* const mask =
        p.causal ? ggml_new_tensor_4d(c, GGML_TYPE_F16, p.len_k, rows, 1, 1)
                 : nullptr;
    out_ = ggml_flash_attn_ext(c, q, k, v, mask,
                               1 / std::sqrt(static_cast<float>(p.dim)), 0, 0);
    if (!ggml_backend_supports_op(backend, out_)) {
      throw Refused("ggml's CPU backend does not support it");
    }
    graph_ = ggml_new_graph(c);
    ggml_build_forward_expand(graph_, out_);
    buffer_.reset(ggml_backend_alloc_ctx_tensors(c, backend));
    if (buffer_ == nullptr) throw Refused("ggml has no memory for it");
    std::ifstream file(tensors, std::ios::binary);
    for (ggml_tensor* const tensor : {q, k, v}) Fill(p.type, &file, tensor);
    if (mask != nullptr) {
      std::vector<uint16_t> values(static_cast<size_t>(rows * p.len_k));
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t token = fold ? 0 : i;
        for (int64_t j = token + 1; j < p.len_k; ++j) {
          values[i * p.len_k + j] = kHalfMinusInfinity;
        }
      }
      ggml_backend_tensor_set(mask, values.data(), 0, ggml_nbytes(mask));
    }
  }

  void Run() {
    if (ggml_backend_graph_compute(backend_, graph_) != GGML_STATUS_SUCCESS) {
      throw std::runtime_error("ggml failed to compute");
    }
  }

  double Checksum() const {
    std::vector<float> values(static_cast<size_t>(ggml_nelements(out_)));
    ggml_backend_tensor_get(out_, values.data(), 0, ggml_nbytes(out_));
    double sum = 0;
    for (const float value : values) sum += std::fabs(value);
    return sum;
  }

 private:
  // q too is rounded to the problem's type, then stored as float32.
  static void Fill(ggml_type type, std::ifstream* file, ggml_tensor* tensor) {
    const int64_t count = ggml_nelements(tensor);
    std::vector<float> values(static_cast<size_t>(count));
    if (!file->read(reinterpret_cast<char*>(values.data()), count * 4)) {
      throw std::runtime_error("the file of tensors is too short");
    }
    std::vector<uint16_t> narrow(values.size());
    if (type == GGML_TYPE_F16) {
      auto* const half = reinterpret_cast<ggml_fp16_t*>(narrow.data());
      ggml_fp32_to_fp16_row(values.data(), half, count);
      ggml_fp16_to_fp32_row(half, values.data(), count);
    } else if (type == GGML_TYPE_BF16) {
      auto* const brain = reinterpret_cast<ggml_bf16_t*>(narrow.data());
      ggml_fp32_to_bf16_row(values.data(), brain, count);
      ggml_bf16_to_fp32_row(brain, values.data(), count);
    }
    const void* const data = tensor->type == GGML_TYPE_F32
                                 ? static_cast<const void*>(values.data())
                                 : narrow.data();
    ggml_backend_tensor_set(tensor, data, 0, ggml_nbytes(tensor));
  }

  ggml_backend_t backend_;
  std::unique_ptr<ggml_context, Release> context_;
  std::unique_ptr<ggml_backend_buffer, Release> buffer_;
  ggml_tensor* out_ = nullptr;
  ggml_cgraph* graph_ = nullptr;
};

double Now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

void Serve(Cpu* cpu) {
  std::printf(
      "{\"peer\": \"ggml\", \"version\": \"%s\", \"wants\": "
      "\"tensors\"}\n",
      ggml_version());
  std::fflush(stdout);
  std::unique_ptr<Attention> attention;
  for (std::string line; std::getline(std::cin, line);) {
    const std::string problem = ValueOf(line, "problem");
    if (!problem.empty()) {
      attention.reset();
      try {
        const Problem parsed(problem);
        cpu->SetThreads(std::stoi(ValueOf(line, "threads")));
        attention = std::make_unique<Attention>(parsed, cpu->backend(),
                                                ValueOf(line, "tensors"));
        attention->Run();
        std::printf("{\"checksum\": %.17g}\n", attention->Checksum());
      } catch (const Refused& reason) {
        attention.reset();
        std::printf("{\"refused\": \"%s\"}\n", reason.what());
      }
    } else {
      if (attention == nullptr) throw std::runtime_error("no problem to time");
      const double seconds = std::stod(ValueOf(line, "seconds"));
      const double start = Now();
      double stop = start;
      int calls = 0;
      do {
        attention->Run();
        ++calls;
        stop = Now();
      } while (stop - start < seconds);
      std::printf("{\"us\": %.3f, \"calls\": %d}\n",
                  (stop - start) / calls * 1e6, calls);
    }
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  // As params.poll, where ggml was built with OpenMP, which has read this
  // before main().
  if (getenv("OMP_WAIT_POLICY") == nullptr) {
    setenv("OMP_WAIT_POLICY", "passive", 0);
    execv("/proc/self/exe", argv);
  }
  try {
    Cpu cpu(argc > 1 ? argv[1] : nullptr);
    Serve(&cpu);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ggml_attention: %s\n", error.what());
    return 1;
  }
}
