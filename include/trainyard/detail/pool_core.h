// The core of trainyard/pool.h: objects and calls with their types erased. Not for users. Any
// thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <expected>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/buffer.h"
#include "trainyard/detail/codec.h"
#include "trainyard/pool_options.h"
#include "trainyard/result.h"
#include "trainyard/timeout.h"

namespace trainyard::workers {
class PoolBackend;
class PoolCall;
}  // namespace trainyard::workers

namespace trainyard::detail {

/// The value that a call returned, or why it failed.
using PoolAnswer = std::expected<RemotePayload, CallError>;

/// An object in its child. One thread.
class PoolObject {
 public:
  PoolObject() = default;
  PoolObject(PoolObject&&) = delete;
  PoolObject& operator=(PoolObject&&) = delete;
  virtual ~PoolObject() = default;
  /// Throws nothing. Whose child it is, is filled in by who asked.
  virtual PoolAnswer call(std::size_t method, RemotePayload arguments) = 0;
};

/// Makes the object with that index; may throw anything.
using PoolMake = std::function<std::unique_ptr<PoolObject>(int index)>;

/// A call in words: that of a function which has caught something, called in its `catch`.
CallError error_of_current_exception(CallError::Kind kind, std::string_view what);

using PoolCalls = std::vector<std::shared_ptr<workers::PoolCall>>;

/// The error of a second get() of one future.
CallError taken_before(int child);
/// Waits until all are answered, at most so long in all, and takes the answers, in their order. An
/// answer that comes after this is dropped.
std::vector<PoolAnswer> take_answers(const PoolCalls& calls, Timeout within,
                                     const std::stop_token& stop);
/// Whether take_answers() would not wait.
bool are_answered(const PoolCalls& calls);

class PoolCore {
 public:
  [[nodiscard]] static Result<std::unique_ptr<PoolCore>> start(const PoolOptions& options,
                                                               PoolMake make);
  PoolCore(PoolCore&&) = delete;
  PoolCore& operator=(PoolCore&&) = delete;
  ~PoolCore();

  [[nodiscard]] int count() const { return count_; }
  std::shared_ptr<workers::PoolCall> call(int child, std::size_t method, PoolAnswer arguments);
  PoolCalls call_all(std::size_t method, PoolAnswer arguments);
  std::expected<void, CallError> restart(int child);
  void shutdown(Timeout grace);
  [[nodiscard]] Result<Buffer> alloc(DType type, Dimensions shape);

 private:
  PoolCore(int count, Timeout grace, std::unique_ptr<workers::PoolBackend> backend);
  void send(std::size_t method, PoolAnswer arguments, const PoolCalls& calls);

  int count_;
  Timeout grace_;
  std::unique_ptr<workers::PoolBackend> backend_;
};

}  // namespace trainyard::detail
