// Looks at the GPUs from a process of its own, so that a driver that hangs or crashes takes nothing
// of the run with it: it is asked, and its answer comes when it comes. Where that process dies, or
// hangs for long, another takes its place.
//
// Belongs to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "hardware/gpu_driver.h"
#include "sys/event_loop.h"

namespace trainyard::hardware {

/// How long the driver may take.
struct GpuPatience {
  Duration list{15'000};  ///< To list its GPUs; one that wakes its cards takes seconds.
  Duration look{10'000};  ///< To look at them, before they are taken for gone.
  Duration late{15'000};  ///< To answer after that, before another process asks it.
};

class GpuWatch {
 public:
  /// Forks the process and waits for its list. Call it early: there should be no other thread. One
  /// that finds no GPU has ended already. An error is one of the operating system; what is wrong
  /// with the driver is in the list.
  static Result<GpuWatch> start(const GpuSources& sources, GpuPatience patience = {});

  GpuWatch(GpuWatch&&) noexcept;
  GpuWatch& operator=(GpuWatch&&) noexcept;
  /// Ends the process.
  ~GpuWatch();

  [[nodiscard]] const GpuList& list() const;
  /// 0 where there are no GPUs.
  [[nodiscard]] std::int64_t pid() const;

  /// Receives each reading, from run_once() of `loop`, which must outlive this. Without an answer
  /// of the driver, or without the process that asks it, no GPU is present in it.
  using Listener = std::move_only_function<void(const std::vector<GpuState>&)>;
  void listen(sys::EventLoop& loop, Listener listener);
  /// Has the GPUs looked at; false when they are being looked at already, which may have begun
  /// before what is to be seen. Without an answer, the listener is notified at once, each time,
  /// and another process asks the driver from time to time.
  bool ask();

  /// The same without a loop: asks and waits, as long as a look may take.
  std::vector<GpuState> look_now();

 private:
  struct State;
  explicit GpuWatch(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace trainyard::hardware
