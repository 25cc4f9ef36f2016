// Steps that most loops need: when to finish, what to save, how long an iteration takes.
//
//   loop.use("time", trainyard::EpochTimer<Train>(...))  // first: around all others
//       .use("finish", trainyard::finish_after<&Train::env_step>(loop, 100'000))
//       .use("save", trainyard::CheckpointSaver<Train>(
//                        {.directory = "checkpoints", .every = 100}));
//
// Of the thread of the pipeline, as all steps.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "trainyard/context.h"
#include "trainyard/context_json.h"
#include "trainyard/pipeline.h"

namespace trainyard {

namespace detail {

std::string more_than_text(std::string_view member, double value, double limit);
/// Makes the directory, and puts the file in its place whole: after a crash the old or the new is
/// there. Throws std::runtime_error.
void save_file(const std::string& directory, const std::string& name, std::string_view bytes);

template <class C>
std::string kept_text(const C& context) {
  Result<Json> saved = kept_to_json(context);
  if (!saved) throw std::runtime_error(saved.error().message);
  return saved->dump(1) + "\n";
}

}  // namespace detail

/// A step that finishes the run when a member of the context is more than `limit` (DI-engine
/// `termination_checker`). Several of them: the first one in order says why.
template <auto Member>
auto finish_after(PipelineBase& loop, double limit) {
  using C = decltype(detail::class_of(Member));
  return [&loop, limit](C& context) {
    const auto value = static_cast<double>(context.*Member);
    if (value > limit) {
      loop.finish(detail::more_than_text(detail::member_name<Member>(), value, limit));
    }
  };
}

/// How long an iteration takes, from this step's forward half to its backward half (DI-engine
/// `epoch_timer`): the first step of all. `told` hears the mean of the last iterations, once in
/// `every`.
template <ContextType C>
class EpochTimer {
 public:
  using Duration = std::chrono::duration<double>;
  using Told = std::function<void(const C& context, Duration mean)>;
  using Now = std::function<std::chrono::nanoseconds()>;

  /// `now` is for tests; empty: the steady clock.
  EpochTimer(std::uint64_t every, Told told, Now now = {})
      : every_(every), told_(std::move(told)), now_(std::move(now)) {}

  void forward(C&) { began_ = time(); }
  void backward(C& context) {
    total_ += time() - began_;
    if (++count_ < every_) return;
    told_(context, Duration(total_) / static_cast<double>(count_));
    total_ = {};
    count_ = 0;
  }

 private:
  [[nodiscard]] std::chrono::nanoseconds time() const {
    return now_ ? now_() : std::chrono::steady_clock::now().time_since_epoch();
  }

  std::uint64_t every_;
  Told told_;
  Now now_;
  std::chrono::nanoseconds began_{};
  std::chrono::nanoseconds total_{};
  std::uint64_t count_ = 0;
};

template <class C>
struct CheckpointOptions {
  std::string directory = "checkpoints";
  /// Saves "iteration_<total_step>" every so many iterations, the first time in the first; 0:
  /// never.
  std::uint64_t every = 0;
  /// Saves "best" whenever this is more than ever before. Not a number: not yet known.
  std::function<double(const C&)> score = {};
  /// The best so far, of a run that goes on where another ended.
  double best = -std::numeric_limits<double>::infinity();
  /// Saves "final" when a run ends, whatever ended it but a failure.
  bool final = true;
  /// Returns the bytes to save. Empty: the kept members of the context, as resume() reads them.
  std::function<std::string(const C&)> bytes = {};
  std::string suffix = ".json";
};

/// Saves on the way back, so register it before the steps whose work it is to save (DI-engine
/// `CkptSaver`). Each file is written whole or not at all.
template <ContextType C>
class CheckpointSaver {
 public:
  explicit CheckpointSaver(CheckpointOptions<C> options) : options_(std::move(options)) {
    if (!options_.bytes) options_.bytes = detail::kept_text<C>;
  }

  void forward(C&) {}
  void backward(C& context) {
    if (options_.every > 0 && context.total_step >= next_) {
      save("iteration_" + std::to_string(context.total_step), context);
      next_ = context.total_step + options_.every;
    }
    if (!options_.score) return;
    const double score = options_.score(context);
    if (!(score > options_.best)) return;
    options_.best = score;
    save("best", context);
  }
  void ended(C& context) {
    if (options_.final) save("final", context);
  }

 private:
  void save(const std::string& name, const C& context) const {
    detail::save_file(options_.directory, name + options_.suffix, options_.bytes(context));
  }

  CheckpointOptions<C> options_;
  std::uint64_t next_ = 0;
};

/// Writes what the context keeps into a file when the run ends (DI-engine `final_ctx_saver`).
template <ContextType C>
class FinalContext {
 public:
  FinalContext(std::string directory, std::string name)
      : directory_(std::move(directory)), name_(std::move(name)) {}
  void forward(C&) {}
  void backward(C&) {}
  void ended(C& context) { detail::save_file(directory_, name_, detail::kept_text(context)); }

 private:
  std::string directory_;
  std::string name_;
};

}  // namespace trainyard
