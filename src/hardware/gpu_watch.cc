#include "hardware/gpu_watch.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "hardware/gpu_driver.h"
#include "model/resources.h"
#include "sys/descriptor.h"
#include "sys/event_loop.h"
#include "sys/packing.h"
#include "sys/passing.h"

namespace trainyard::hardware {
namespace {

/// No answer is longer: of so many GPUs and processes nobody has heard.
constexpr std::size_t kAnswerMax = std::size_t{4} << 20U;

void pack(sys::Packing& packing, const model::Gpu& gpu) {
  packing.add(gpu.number);
  for (const std::string* const text : {&gpu.uuid, &gpu.name, &gpu.pci}) packing.add(*text);
  packing.add(gpu.memory.count);
  packing.add(gpu.speed);
  packing.add(gpu.maker == model::GpuMaker::Amd);
  packing.add(gpu.slice.value_or(-1));
  packing.add(gpu.late);
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
  return gpu;
}

std::string pack(const GpuList& list) {
  sys::Packing packing;
  packing.add(static_cast<std::uint32_t>(list.gpus.size()));
  for (const model::Gpu& gpu : list.gpus) pack(packing, gpu);
  packing.add(list.none_reason);
  packing.add(static_cast<std::uint32_t>(list.notes.size()));
  for (const std::string& note : list.notes) packing.add(note);
  return std::move(packing).take();
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

std::string pack(std::span<const GpuState> states) {
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

/// What the process does from its beginning to its end.
void watch(int socket, const GpuSources& sources) {
  Gpus gpus(sources);
  if (!sys::send_packed(socket, pack(gpus.list())) || gpus.list().gpus.empty()) return;
  char word = 0;
  while (true) {
    const ssize_t got = ::recv(socket, &word, 1, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got != 1 || !sys::send_packed(socket, pack(gpus.look()))) return;
  }
}

/// It has nothing of what its parent has but its socket, and ends with its parent.
[[noreturn]] void become_watch(int socket, const GpuSources& sources) {
  constexpr int kSocket = 3;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, "trainyard-gpus");
  // Ctrl-C and a lost terminal are for the run, which ends this one when it is over.
  ::setsid();
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  const int moved = socket == kSocket ? socket : ::dup2(socket, kSocket);
  ::close_range(kSocket + 1, ~0U, 0);
  // Nobody waits for the end of an output because of it.
  const int nowhere = ::open("/dev/null", O_RDWR);
  for (int standard = 0; nowhere >= 0 && standard < kSocket; ++standard) ::dup2(nowhere, standard);
  if (moved == kSocket) watch(kSocket, sources);
  ::_exit(0);
}

}  // namespace

struct GpuWatch::State {
  State() = default;
  State(State&&) = delete;
  State& operator=(State&&) = delete;
  ~State();

  /// Reads what there is; the next whole answer, or nothing yet.
  std::optional<std::string> receive();
  std::optional<std::string> wait_for_answer(Duration most);
  void hear();
  void give_up();
  std::vector<GpuState> nothing_there() const;
  void end();

  std::int64_t pid = 0;
  sys::Descriptor socket;
  GpuList list;
  sys::PackedReader answers{kAnswerMax};
  bool asked = false;
  bool overdue = false;  ///< It was asked, and does not answer.
  sys::EventLoop* loop = nullptr;
  Listener listener;
  sys::EventLoop::TimerId timer = 0;
};

GpuWatch::State::~State() { end(); }

void GpuWatch::State::end() {
  if (loop != nullptr && socket.is_open()) loop->unwatch(socket.get());
  if (loop != nullptr && asked) loop->cancel(timer);
  socket.close();
  if (pid == 0) return;
  // One that hangs in the driver cannot be waited for; it is gone when the driver lets it go.
  ::kill(static_cast<pid_t>(pid), SIGKILL);
  for (int tries = 0; tries < 50; ++tries) {
    if (::waitpid(static_cast<pid_t>(pid), nullptr, WNOHANG) != 0) break;
    ::poll(nullptr, 0, 2);
  }
  pid = 0;
}

std::optional<std::string> GpuWatch::State::receive() {
  answers.read(socket.get());
  return answers.next();
}

std::optional<std::string> GpuWatch::State::wait_for_answer(Duration most) {
  const auto end = std::chrono::steady_clock::now() + most;
  while (true) {
    if (auto answer = receive()) return answer;
    const auto left = std::chrono::ceil<Duration>(end - std::chrono::steady_clock::now());
    if (answers.broken() || left <= Duration{0}) return std::nullopt;
    pollfd waiting{.fd = socket.get(), .events = POLLIN, .revents = 0};
    ::poll(&waiting, 1, static_cast<int>(left.count()));
  }
}

std::vector<GpuState> GpuWatch::State::nothing_there() const {
  std::vector<GpuState> states(list.gpus.size());
  for (GpuState& state : states) state.present = false;
  return states;
}

void GpuWatch::State::hear() {
  while (const auto answer = receive()) {
    if (std::exchange(asked, false)) loop->cancel(timer);
    overdue = false;
    listener(unpack_states(*answer, list.gpus.size()));
  }
  if (!answers.broken()) return;
  loop->unwatch(socket.get());
  if (std::exchange(asked, false)) loop->cancel(timer);
  listener(nothing_there());
}

/// The driver may answer yet: it is still listened to, and not asked anything else before.
void GpuWatch::State::give_up() {
  overdue = true;
  listener(nothing_there());
}

Result<GpuWatch> GpuWatch::start(const GpuSources& sources) {
  auto ends = sys::socket_pair();
  if (!ends) return std::unexpected(std::move(ends.error()).in("cannot look at the GPUs"));
  auto state = std::make_unique<State>();
  state->socket = std::move(ends->first);
  sys::Descriptor other = std::move(ends->second);
  const auto pid = ::fork();
  if (pid < 0) return std::unexpected(sys::system_error("cannot look at the GPUs", errno));
  if (pid == 0) become_watch(other.get(), sources);
  state->pid = pid;
  // So that its end is seen.
  other.close();
  if (const auto answer = state->wait_for_answer(kListMax)) {
    state->list = unpack_list(*answer);
  } else {
    state->list.none_reason = state->answers.broken() ? "the driver crashed whoever asked it"
                                                      : "the driver does not answer";
  }
  if (state->list.gpus.empty()) state->end();
  return GpuWatch(std::move(state));
}

GpuWatch::GpuWatch(std::unique_ptr<State> state) : state_(std::move(state)) {}
GpuWatch::GpuWatch(GpuWatch&&) noexcept = default;
GpuWatch& GpuWatch::operator=(GpuWatch&&) noexcept = default;
GpuWatch::~GpuWatch() = default;

const GpuList& GpuWatch::list() const { return state_->list; }
std::int64_t GpuWatch::pid() const { return state_->pid; }

void GpuWatch::listen(sys::EventLoop& loop, Listener listener) {
  state_->loop = &loop;
  state_->listener = std::move(listener);
  if (state_->pid == 0) return;
  loop.watch_readable(state_->socket.get(), [state = state_.get()] { state->hear(); });
}

bool GpuWatch::ask() {
  State& state = *state_;
  if (state.pid == 0 || state.loop == nullptr) return true;
  // Whoever asks is told each time, as he counts for how long.
  if (state.answers.broken() || state.overdue) {
    state.listener(state.nothing_there());
    return true;
  }
  if (state.asked) return false;
  state.asked = true;
  static_cast<void>(::send(state.socket.get(), "l", 1, MSG_NOSIGNAL));
  state.timer = state.loop->after(kLookMax, [&state] { state.give_up(); });
  return true;
}

std::vector<GpuState> GpuWatch::look_now() {
  State& state = *state_;
  if (state.pid == 0) return {};
  static_cast<void>(::send(state.socket.get(), "l", 1, MSG_NOSIGNAL));
  const auto answer = state.wait_for_answer(kLookMax);
  return answer ? unpack_states(*answer, state.list.gpus.size()) : state.nothing_there();
}

}  // namespace trainyard::hardware
