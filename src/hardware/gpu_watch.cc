#include "hardware/gpu_watch.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

#include "hardware/gpu_asker.h"
#include "model/resources.h"
#include "sys/descriptor.h"
#include "sys/packing.h"

namespace trainyard::hardware {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// No answer is longer: of so many GPUs and processes nobody has heard.
constexpr std::size_t kAnswerMax = std::size_t{4} << 20U;
/// How long after one that died another asks the driver: twice as long each time.
constexpr Duration kPauseLeast{500};
constexpr Duration kPauseMax{30'000};

}  // namespace

struct GpuWatch::State {
  State() = default;
  State(State&&) = delete;
  State& operator=(State&&) = delete;
  ~State() { leave(); }

  /// Reads what there is; the next whole answer, or nothing yet.
  std::optional<std::string> receive();
  std::optional<std::string> wait_for_answer(Duration most);
  /// Has another process ask, which must list its GPUs first.
  void begin_another(bool chosen);
  void leave();
  void hear();
  void give_up();
  [[nodiscard]] std::vector<GpuState> nothing_there() const;
  [[nodiscard]] std::vector<GpuState> seen_in(const std::string& answer);
  [[nodiscard]] std::vector<GpuState> in_our_order(std::vector<GpuState> states) const;
  [[nodiscard]] std::optional<std::size_t> place_of(const model::Gpu& gpu) const;

  GpuPatience patience;
  std::optional<GpuAsker> asker;  ///< Nothing where there are no GPUs.
  sys::Descriptor socket;
  GpuList list;
  /// The GPUs as known now: those that were late have their names.
  std::vector<model::Gpu> known;
  std::vector<model::Gpu> theirs;  ///< As the process that asks now has listed them.
  sys::PackedReader answers{kAnswerMax};
  sys::EventLoop* loop = nullptr;
  Listener listener;
  sys::EventLoop::TimerId timer = 0;
  SteadyClock::time_point again_at;
  Duration pause = kPauseLeast;
  bool listed = false;
  bool asked = false;
  bool overdue = false;  ///< It was asked, and does not answer.
};

std::optional<std::string> GpuWatch::State::receive() {
  if (!socket.is_open()) return std::nullopt;
  answers.read(socket.get());
  return answers.next();
}

std::optional<std::string> GpuWatch::State::wait_for_answer(Duration most) {
  const auto end = SteadyClock::now() + most;
  while (true) {
    if (auto answer = receive()) return answer;
    const auto left = std::chrono::ceil<Duration>(end - SteadyClock::now());
    if (!socket.is_open() || answers.broken() || left <= Duration{0}) return std::nullopt;
    pollfd waiting{.fd = socket.get(), .events = POLLIN, .revents = 0};
    ::poll(&waiting, 1, static_cast<int>(left.count()));
  }
}

void GpuWatch::State::leave() {
  if (loop != nullptr && socket.is_open()) loop->unwatch(socket.get());
  if (std::exchange(asked, false) && loop != nullptr) loop->cancel(timer);
  socket.close();
}

void GpuWatch::State::begin_another(bool chosen) {
  leave();
  listed = false;
  overdue = false;
  answers = sys::PackedReader(kAnswerMax);
  again_at = SteadyClock::now() + patience.list;
  Result<sys::Descriptor> end = asker->another(chosen);
  if (!end) return;
  socket = std::move(*end);
  if (loop != nullptr) loop->watch_readable(socket.get(), [this] { hear(); });
}

std::vector<GpuState> GpuWatch::State::nothing_there() const {
  std::vector<GpuState> states(known.size());
  for (GpuState& state : states) state.present = false;
  return states;
}

/// The index of this GPU among `known`. The driver may list them in another order than at the
/// beginning, and a GPU that was late then may have its name now.
std::optional<std::size_t> GpuWatch::State::place_of(const model::Gpu& gpu) const {
  const auto same = std::ranges::find_if(known, [&gpu](const model::Gpu& ours) {
    if (!ours.uuid.empty()) return ours.uuid == gpu.uuid;
    return !ours.pci.empty() && ours.pci == gpu.pci;
  });
  if (same != known.end()) return static_cast<std::size_t>(same - known.begin());
  const auto late = std::ranges::find_if(known, [&gpu](const model::Gpu& ours) {
    return ours.late && ours.uuid.empty() && ours.number == gpu.number;
  });
  if (late != known.end()) return static_cast<std::size_t>(late - known.begin());
  return std::nullopt;
}

std::vector<GpuState> GpuWatch::State::in_our_order(std::vector<GpuState> states) const {
  if (theirs == list.gpus) return states;
  std::vector<GpuState> ours = nothing_there();
  for (std::size_t i = 0; i < states.size(); ++i) {
    model::Gpu gpu = states[i].found.value_or(theirs[i]);
    const std::optional<std::size_t> place = place_of(gpu);
    if (!place) continue;
    ours[*place] = std::move(states[i]);
    ours[*place].found.reset();
    if (!list.gpus[*place].late || !ours[*place].present) continue;
    gpu.late = true;
    ours[*place].found = std::move(gpu);
  }
  return ours;
}

std::vector<GpuState> GpuWatch::State::seen_in(const std::string& answer) {
  std::vector<GpuState> states = in_our_order(unpack_states(answer, theirs.size()));
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i].found) known[i] = *states[i].found;
  }
  return states;
}

void GpuWatch::State::hear() {
  while (const auto answer = receive()) {
    if (!std::exchange(listed, true)) {
      theirs = unpack_list(*answer).gpus;
      continue;
    }
    if (std::exchange(asked, false)) loop->cancel(timer);
    overdue = false;
    pause = kPauseLeast;
    listener(seen_in(*answer));
  }
  if (!answers.broken() || !socket.is_open()) return;
  leave();
  again_at = SteadyClock::now() + pause;
  pause = std::min(2 * pause, kPauseMax);
  listener(nothing_there());
}

void GpuWatch::State::give_up() {
  overdue = true;
  again_at = SteadyClock::now() + patience.late;
  listener(nothing_there());
}

Result<GpuWatch> GpuWatch::start(const GpuSources& sources, GpuPatience patience) {
  Result<GpuAsker> asker = GpuAsker::start(sources);
  if (!asker) return std::unexpected(std::move(asker.error()));
  auto state = std::make_unique<State>();
  state->patience = patience;
  state->asker.emplace(std::move(*asker));
  state->begin_another(true);
  if (const auto answer = state->wait_for_answer(patience.list)) {
    state->list = unpack_list(*answer);
    state->listed = true;
  } else {
    state->list.none_reason = state->answers.broken() ? "the driver crashes programs that query it"
                                                      : "the driver does not answer";
  }
  state->known = state->list.gpus;
  state->theirs = state->list.gpus;
  if (state->known.empty()) state->asker.reset();
  return GpuWatch(std::move(state));
}

GpuWatch::GpuWatch(std::unique_ptr<State> state) : state_(std::move(state)) {}
GpuWatch::GpuWatch(GpuWatch&&) noexcept = default;
GpuWatch& GpuWatch::operator=(GpuWatch&&) noexcept = default;
GpuWatch::~GpuWatch() = default;

const GpuList& GpuWatch::list() const { return state_->list; }
std::int64_t GpuWatch::pid() const { return state_->asker ? state_->asker->pid() : 0; }

void GpuWatch::listen(sys::EventLoop& loop, Listener listener) {
  state_->loop = &loop;
  state_->listener = std::move(listener);
  if (!state_->asker || !state_->socket.is_open()) return;
  loop.watch_readable(state_->socket.get(), [state = state_.get()] { state->hear(); });
}

bool GpuWatch::ask() {
  State& state = *state_;
  if (!state.asker || state.loop == nullptr) return true;
  // The listener is notified each time, as it counts for how long.
  if (!state.socket.is_open() || !state.listed || state.overdue) {
    if (SteadyClock::now() >= state.again_at) state.begin_another(false);
    state.listener(state.nothing_there());
    return true;
  }
  if (state.asked) return false;
  state.asked = true;
  static_cast<void>(::send(state.socket.get(), "l", 1, MSG_NOSIGNAL));
  state.timer = state.loop->after(state.patience.look, [&state] { state.give_up(); });
  return true;
}

std::vector<GpuState> GpuWatch::look_now() {
  State& state = *state_;
  if (!state.asker) return {};
  static_cast<void>(::send(state.socket.get(), "l", 1, MSG_NOSIGNAL));
  const auto answer = state.wait_for_answer(state.patience.look);
  return answer ? state.seen_in(*answer) : state.nothing_there();
}

}  // namespace trainyard::hardware
