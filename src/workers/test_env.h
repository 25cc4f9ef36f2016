// For tests alone: what the children of a pool are in pool_test.cc, and gates that hold them.
#pragma once

#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "sys/descriptor.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"
#include "trainyard/buffer.h"
#include "trainyard/pool.h"

namespace trainyard::workers {

/// Whoever passes waits until it is opened, once for each; before or after that.
class Gate {
 public:
  Gate() {
    check(::mkfifo(path().c_str(), 0600) == 0, "a fresh gate");
    // A letter is lost where no process has the gate open: this one has.
    held_ = sys::Descriptor(::open(path().c_str(), O_RDWR | O_CLOEXEC));
    check(held_.is_open(), "a gate that is held");
  }
  [[nodiscard]] std::string path() const { return directory_ / "gate"; }
  static void pass(const std::string& path) {
    std::ofstream(path + ".reached") << 'x';
    // Several may wait here: one is let through each time, and takes no more than its letter.
    const sys::Descriptor gate(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    char letter = 0;
    check(::read(gate.get(), &letter, 1) == 1, "a gate that is there until it is opened");
  }
  /// Whether somebody stands before it, or has.
  [[nodiscard]] bool is_reached() const {
    return sys::eventually([this] { return ::access((path() + ".reached").c_str(), F_OK) == 0; });
  }
  /// By its path: a worker has none of the descriptors of who started it.
  void open() const {
    const sys::Descriptor gate(::open(path().c_str(), O_WRONLY | O_CLOEXEC));
    check(::write(gate.get(), "x", 1) == 1, "a gate that opens");
  }

 private:
  sys::TemporaryDirectory directory_;
  sys::Descriptor held_;
};

struct Step {
  std::string name;
  std::vector<double> values;
  friend bool operator==(const Step&, const Step&) = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Step, name, values)

struct Unsendable {
  int value = 0;
};
inline void to_json(nlohmann::json& /*to*/, const Unsendable& /*from*/) {
  throw std::runtime_error("it has no words");
}
inline void from_json(const nlohmann::json& /*from*/, Unsendable& /*to*/) {}

/// Neither copied nor moved.
class Env {
 public:
  explicit Env(int index) : index_(index) {}
  Env(Env&&) = delete;
  Env& operator=(Env&&) = delete;
  ~Env() {
    if (!mark_.empty()) std::ofstream(mark_) << "destroyed";
  }

  int add(int n) { return sum_ += n; }
  [[nodiscard]] int sum() const noexcept { return sum_; }
  [[nodiscard]] int index() const { return index_; }
  void clear() { sum_ = 0; }
  Step change(const Step& step, const std::string& name) {
    Step changed = step;
    changed.name += name;
    return changed;
  }
  nlohmann::json echo(const nlohmann::json& value) const { return value; }
  std::string text(std::size_t bytes) { return std::string(bytes, 'x'); }
  int fail(const std::string& why) {
    ++sum_;
    throw std::runtime_error(why);
  }
  int fail_because(const std::string& why, const std::string& cause) {
    try {
      throw std::out_of_range(cause);
    } catch (...) {
      std::throw_with_nested(std::runtime_error(why));
    }
  }
  int pass(const std::string& gate, int result) {
    Gate::pass(gate);
    return result;
  }
  Unsendable unsendable() { return {}; }
  int take(const Unsendable& it) { return it.value; }
  std::string no_text() { return "\xff"; }
  double not_a_number() { return std::nan(""); }
  /// Keeps the buffer, and has it twice as large in its answer.
  std::pair<Buffer, double> twice(const Buffer& buffer) {
    kept_ = buffer;
    Buffer result(DType::Float32, buffer.shape());
    const std::span<const float> from = buffer.as<float>();
    const std::span<float> to = result.fill<float>();
    double sum = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
      to[i] = 2 * from[i];
      sum += from[i];
    }
    return {result, sum};
  }
  double kept_at(std::size_t place) { return kept_.as<float>()[place]; }
  std::vector<Buffer> both(const std::vector<Buffer>& buffers, const Buffer& other) {
    std::vector<Buffer> all = buffers;
    all.push_back(other);
    return all;
  }
  std::vector<Buffer> many(std::size_t count) {
    return std::vector<Buffer>(count, Buffer(DType::UInt8, {1}));
  }
  int die(int signal) {
    std::cerr << "the last words of " << index_ << '\n' << std::flush;
    return std::raise(signal);
  }
  int exit_with(int code) { std::_Exit(code); }
  int pid() { return ::getpid(); }
  void ignore_terminate() { std::signal(SIGTERM, SIG_IGN); }
  void mark_at_end(const std::string& path) { mark_ = path; }

 private:
  int index_;
  int sum_ = 0;
  std::string mark_;
  Buffer kept_;
};

inline int sum_and(Env& env, int more) { return env.sum() + more; }

using Envs =
    Pool<Env, &Env::add, &Env::sum, &Env::index, &Env::clear, &Env::change, &Env::echo, &Env::text,
         &Env::fail, &Env::fail_because, &Env::pass, &Env::unsendable, &Env::take, &Env::no_text,
         &Env::not_a_number, &Env::twice, &Env::kept_at, &Env::both, &Env::many, &Env::die,
         &Env::exit_with, &Env::pid, &Env::ignore_terminate, &Env::mark_at_end, &sum_and>;

}  // namespace trainyard::workers
