// Nodes for a time, from a batch system: requested by a program that holds them as long as it runs
// (`salloc`), reported when they are granted, and given back when they are needed no more.
//
//   Asked ────────▶ Granted ────────▶ Ended ────────▶ Over
//     │   a line of      the program       what sees to
//     │  granted_nodes()    ends           that says so
//     └──────────────────────────────────▶ (never granted: there is nothing to be over)
//
// Between Ended and Over attempts may still run there: the batch system is ending them.
//
// Belongs to the thread of its loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "sys/event_loop.h"
#include "sys/line_stream.h"
#include "sys/stream_program.h"

namespace trainyard::run {

/// Maximum number of nodes of an allocation.
constexpr std::size_t kNodesMax = 4096;

/// Nodes that a batch system has given for a time.
struct GrantedNodes {
  std::string allocation;        ///< Its number: digits.
  std::optional<Duration> left;  ///< Nothing: it has no end that is known, as of "UNLIMITED".
  std::vector<std::string> nodes;

  friend bool operator==(const GrantedNodes&, const GrantedNodes&) = default;
};

/// Reads the line of the program that asked for them, "12 1-02:03:04 node1 node2": the number of
/// the allocation, how much time is left of it as Slurm's squeue shows that ("%L"), and the names
/// of its nodes. Pure; the line may be any text, from an untrusted source.
Result<GrantedNodes> granted_nodes(std::string_view line);

class Allocation {
 public:
  struct Options {
    /// The command that requests an allocation. It prints the granted nodes on its standard output,
    /// in one line, and holds them until its standard input ends.
    std::vector<std::string> ask;
    /// The command that prints a line, whatever it is, once nothing of an allocation runs any more.
    std::function<std::vector<std::string>(const std::string& allocation)> see_its_end;
  };
  /// None of them may destroy the allocation.
  struct Ears {
    std::function<void(const GrantedNodes&)> granted;
    std::function<void(const std::string& why)> ended;        ///< Granted or not.
    std::function<void(const std::string& allocation)> over;  ///< For one that was granted.
    std::function<void(const std::string& line)> said;        ///< Printed by `ask`, for users.
  };

  Allocation(sys::EventLoop& loop, Options options, Ears ears);
  Allocation(Allocation&&) = delete;
  Allocation& operator=(Allocation&&) = delete;
  /// Gives back what is held or requested, and waits at most some seconds for that.
  ~Allocation();

  /// Once.
  void ask();
  /// Its nodes are not needed any more: it ends, and `ended` is called before this returns.
  void give_back();
  /// Nothing comes of it any more.
  [[nodiscard]] bool is_over() const {
    return phase_ == Phase::Over || (phase_ == Phase::Ended && !nodes_);
  }
  /// The nodes that were granted, also when it has ended.
  [[nodiscard]] const std::optional<GrantedNodes>& nodes() const { return nodes_; }

 private:
  enum class Phase : std::uint8_t { Asked, Granted, Ended, Over };

  Result<void> listen_to(const std::vector<std::string>& words, sys::LineStream::OnLine on_line,
                         sys::LineStream::OnEnd on_end);
  void hear(std::string_view line);
  void tell_what_it_says();
  void plan_to_tell();
  void end(const std::string& why);
  void see_to_the_end(const std::string& number);

  sys::EventLoop& loop_;
  Options options_;
  Ears ears_;
  Phase phase_ = Phase::Asked;
  std::optional<GrantedNodes> nodes_;
  std::optional<sys::StreamProgram> program_;  ///< Runs `ask`, then `see_its_end`.
  std::unique_ptr<sys::LineStream> stream_;
  std::size_t told_ = 0;  ///< Bytes of its standard error that were passed on.
  std::optional<sys::EventLoop::TimerId> timer_;
};

}  // namespace trainyard::run
