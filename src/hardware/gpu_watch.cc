#include "hardware/gpu_watch.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "model/resources.h"
#include "sys/descriptor.h"
#include "sys/fork.h"
#include "sys/packing.h"
#include "sys/passing.h"

namespace trainyard::hardware {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// No answer is longer: of so many GPUs and processes nobody has heard.
constexpr std::size_t kAnswerMax = std::size_t{4} << 20U;
/// How long after one that died another asks the driver: twice as long each time.
constexpr Duration kPauseLeast{500};
constexpr Duration kPauseMax{30'000};

constexpr int kSocket = sys::kLoneSocket;
constexpr char kChosen = 'c';
constexpr char kAll = 'a';

/// Kills it and waits for its end, but not for long: one that hangs in the driver is gone when the
/// driver lets it go. Whether it is.
bool has_ended(pid_t pid) {
  ::kill(pid, SIGKILL);
  for (int tries = 0; tries < 50; ++tries) {
    if (::waitpid(pid, nullptr, WNOHANG) != 0) return true;
    ::poll(nullptr, 0, 2);
  }
  return false;
}

void begin_alone(int socket) {
  if (!sys::become_alone({.socket = socket, .name = "trainyard-gpus"})) ::_exit(0);
}

void pack(sys::Packing& packing, const model::Gpu& gpu) {
  packing.add(gpu.number);
  for (const std::string* const text : {&gpu.uuid, &gpu.name, &gpu.pci}) packing.add(*text);
  packing.add(gpu.memory.count);
  packing.add(gpu.speed);
  packing.add(gpu.maker == model::GpuMaker::Amd);
  packing.add(gpu.slice.value_or(-1));
  packing.add(gpu.late);
  packing.add(gpu.cuda_number.value_or(-1));
}

std::string pack_list(const GpuList& list) {
  sys::Packing packing;
  packing.add(static_cast<std::uint32_t>(list.gpus.size()));
  for (const model::Gpu& gpu : list.gpus) pack(packing, gpu);
  packing.add(list.none_reason);
  packing.add(static_cast<std::uint32_t>(list.notes.size()));
  for (const std::string& note : list.notes) packing.add(note);
  return std::move(packing).take();
}

std::string pack_states(std::span<const GpuState> states) {
  sys::Packing packing;
  for (const GpuState& state : states) {
    packing.add(state.present);
    packing.add(state.processes_known);
    packing.add(state.utilization.has_value());
    if (state.utilization) packing.add(*state.utilization);
    packing.add(state.used.count);
    packing.add(static_cast<std::uint32_t>(state.processes.size()));
    for (const GpuProcess& process : state.processes) {
      packing.add(process.pid);
      packing.add(process.memory.count);
      packing.add(process.memory_known);
      packing.add(process.draws);
    }
    packing.add(state.found.has_value());
    if (state.found) pack(packing, *state.found);
  }
  return std::move(packing).take();
}

/// The main function of the process that asks the driver.
[[noreturn]] void become_asker(int socket, GpuSources sources, bool chosen) {
  begin_alone(socket);
  if (!chosen) sources.environment.clear();
  Gpus gpus(sources);
  if (!sys::send_packed(kSocket, pack_list(gpus.list()))) ::_exit(0);
  char word = 0;
  while (!gpus.list().gpus.empty()) {
    const ssize_t got = ::recv(kSocket, &word, 1, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got != 1 || !sys::send_packed(kSocket, pack_states(gpus.look()))) break;
  }
  ::_exit(0);
}

/// The main function of their parent, which exits when the other end of its socket is closed.
[[noreturn]] void become_parent(int socket, const GpuSources& sources) {
  begin_alone(socket);
  pid_t asker = 0;
  while (true) {
    std::array<char, 1> word{};
    std::vector<sys::Descriptor> ends;
    const ssize_t got = sys::receive_with(kSocket, word, ends, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got != 1) break;
    if (asker != 0 && !has_ended(asker)) continue;
    asker = 0;
    if (ends.size() != 1) continue;
    asker = ::fork();
    if (asker == 0) become_asker(ends.front().get(), sources, word.front() == kChosen);
    if (asker < 0) asker = 0;
  }
  if (asker != 0) ::kill(asker, SIGKILL);
  ::_exit(0);
}

model::Gpu unpack_gpu(sys::Unpacking& packed) {
  model::Gpu gpu;
  gpu.number = packed.number<int>();
  for (std::string* const each : {&gpu.uuid, &gpu.name, &gpu.pci}) *each = packed.text();
  gpu.memory = {packed.number<std::int64_t>()};
  gpu.speed = packed.number<std::int64_t>();
  gpu.maker = packed.number<bool>() ? model::GpuMaker::Amd : model::GpuMaker::Nvidia;
  if (const int slice = packed.number<int>(); slice >= 0) gpu.slice = slice;
  gpu.late = packed.number<bool>();
  if (const int number = packed.number<int>(); number >= 0) gpu.cuda_number = number;
  return gpu;
}

GpuList unpack_list(std::string_view text) {
  sys::Unpacking packed(text);
  GpuList list;
  list.gpus.resize(packed.count());
  for (model::Gpu& gpu : list.gpus) gpu = unpack_gpu(packed);
  list.none_reason = packed.text();
  list.notes.resize(packed.count());
  for (std::string& note : list.notes) note = packed.text();
  return list;
}

/// Reads the states of `count` GPUs.
std::vector<GpuState> unpack_states(std::string_view text, std::size_t count) {
  sys::Unpacking packed(text);
  std::vector<GpuState> states(count);
  for (GpuState& state : states) {
    state.present = packed.number<bool>();
    state.processes_known = packed.number<bool>();
    if (packed.number<bool>()) state.utilization = packed.number<double>();
    state.used = {packed.number<std::int64_t>()};
    state.processes.resize(packed.count());
    for (GpuProcess& process : state.processes) {
      process.pid = packed.number<std::int64_t>();
      process.memory = {packed.number<std::int64_t>()};
      process.memory_known = packed.number<bool>();
      process.draws = packed.number<bool>();
    }
    if (packed.number<bool>()) state.found = unpack_gpu(packed);
  }
  return states;
}

}  // namespace

/// The processes that ask the driver of the GPUs, of which one may hang or crash.
///
/// One is forked early, when there is no other thread yet, and never touches a driver: it forks the
/// one that does, and another in its place whenever that is wanted. Belongs to one thread.
class GpuAsker {
 public:
  /// Forks the first of them; no driver is asked yet.
  static Result<GpuAsker> start(const GpuSources& sources);

  GpuAsker(GpuAsker&& other) noexcept;
  GpuAsker& operator=(GpuAsker&&) = delete;
  /// Ends them.
  ~GpuAsker();

  /// Has one that asks the driver, in the place of the one before, which is killed. The end of a
  /// socket over which it sends its list at once, and then the states of these for each byte that
  /// it hears, for unpack_list() and unpack_states(), as sys::send_packed does. It is closed where
  /// there is no such process any more: it has died, or the one before hangs in the driver so that
  /// it cannot be killed. `chosen`: those that the environment leaves, in its order; else all.
  [[nodiscard]] Result<sys::Descriptor> another(bool chosen);

  /// The process that was forked first.
  [[nodiscard]] std::int64_t pid() const { return pid_; }

 private:
  GpuAsker(std::int64_t pid, sys::Descriptor words) : pid_(pid), words_(std::move(words)) {}

  std::int64_t pid_ = 0;
  sys::Descriptor words_;
};

Result<GpuAsker> GpuAsker::start(const GpuSources& sources) {
  auto ends = sys::socket_pair();
  if (!ends) return std::unexpected(std::move(ends.error()).in("cannot query the GPUs"));
  const pid_t pid = ::fork();
  if (pid < 0) return std::unexpected(sys::system_error("cannot query the GPUs", errno));
  if (pid == 0) become_parent(ends->second.get(), sources);
  return GpuAsker(pid, std::move(ends->first));
}

GpuAsker::GpuAsker(GpuAsker&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), words_(std::move(other.words_)) {}

GpuAsker::~GpuAsker() {
  words_.close();
  if (pid_ != 0) static_cast<void>(has_ended(static_cast<pid_t>(pid_)));
}

Result<sys::Descriptor> GpuAsker::another(bool chosen) {
  auto ends = sys::socket_pair();
  if (!ends) return std::unexpected(std::move(ends.error()).in("cannot query the GPUs"));
  const std::array<int, 1> passed{ends->second.get()};
  const char word = chosen ? kChosen : kAll;
  // Where nobody hears it the other end is closed with this function, which says so.
  static_cast<void>(sys::send_with(words_.get(), std::string_view(&word, 1), passed,
                                   MSG_NOSIGNAL | MSG_DONTWAIT));
  return std::move(ends->first);
}

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
