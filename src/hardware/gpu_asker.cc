#include "hardware/gpu_asker.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <expected>
#include <span>

#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "model/resources.h"
#include "sys/lone_process.h"
#include "sys/packing.h"
#include "sys/passing.h"

namespace trainyard::hardware {
namespace {

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

}  // namespace

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

namespace {

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

}  // namespace

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

}  // namespace trainyard::hardware
