// For tests alone: a machine as its yard sees it, and the agent there, which the test plays by
// hand.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "link/control_socket.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/launch.h"
#include "model/resources.h"
#include "run/remote_machine.h"
#include "run/unshared_files.h"
#include "sys/descriptor.h"
#include "sys/event_loop.h"
#include "sys/line_stream.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"
#include "wire/agent.h"

namespace trainyard::run {

inline constexpr model::AttemptKey kOne{.task = {1}, .attempt = 1};

/// A yard's end of an agent that the test plays by hand: a few lines of Python lead to it, as socat
/// or ssh would.
class TestAgent : public testing::Test {
 public:
  TestAgent() : listener_(link::listen_privately(directory_ / "agent").value()) {
    std::ofstream(directory_ / "lead.py")
        << "import os, select, socket, sys\n"
           "to = socket.socket(socket.AF_UNIX)\n"
           "to.connect(sys.argv[1])\n"
           "while True:\n"
           "    for one in select.select([0, to], [], [])[0]:\n"
           "        got = os.read(one if one == 0 else to.fileno(), 65536)\n"
           "        if not got: sys.exit(0)\n"
           "        to.sendall(got) if one == 0 else os.write(1, got)\n";
    loop_.watch_readable(listener_.get(), [this] {
      stream_ = std::make_unique<sys::LineStream>(
          loop_, link::accept_from(listener_),
          sys::LineStream::Options{
              .line_max = wire::kAgentLineMax,
              .on_line = [this](std::string_view line) { hear(wire::yard_says(line).value()); },
              .on_end = [this](const std::string&) { stream_.reset(); }});
    });
  }
  ~TestAgent() override { loop_.unwatch(listener_.get()); }

 protected:
  void make(Duration lease = Duration(60'000), Duration end_max = Duration(60'000)) {
    machine_ = std::make_unique<RemoteMachine>(loop_, options(lease, end_max));
    machine_->connect();
  }
  RemoteMachine::Options options(Duration lease = Duration(60'000),
                                 Duration end_max = Duration(60'000)) const {
    return {.name = "lab1",
            .key = "k",
            .command = {"/usr/bin/python3", directory_ / "lead.py", directory_ / "agent"},
            .program = "trainyard 0",
            .lease = lease,
            .end_max = end_max,
            .until = until_,
            .again_after = Duration(10),
            .unshared = unshared_};
  }

  /// The automatic part of the agent: it greets, is ready, and answers pulses while `answers_`.
  void hear(const wire::YardSays& said) {
    if (const auto* const open = std::get_if<wire::AgentOpen>(&said.what)) {
      last_heard_ = open->received;
      if (hello_) hello_->received = heard_;
      if (hello_) say(*hello_);
    } else if (const auto* const heard = std::get_if<wire::AgentHeard>(&said.what)) {
      told_until_ = heard->clock;
      last_heard_ = heard->up_to;
      if (answers_) say(wire::AgentHeard{.up_to = heard_, .clock = clock_});
    }
    if (said.number == 0) return;
    heard_ = said.number;
    if (std::holds_alternative<wire::AgentBegin>(said.what)) {
      begin_ = std::get<wire::AgentBegin>(said.what);
      if (gets_ready_) say(wire::AgentReady{}, /*numbered=*/true);
    } else {
      heard_lines_.push_back(wire::to_line(said));
    }
  }
  void say(decltype(wire::AgentSays::what) what, bool numbered = false) {
    const std::uint64_t number = numbered ? ++said_ : 0;
    stream_->send(wire::to_line(wire::AgentSays{.number = number, .what = std::move(what)}));
  }
  void tell(model::What what) {
    say(wire::AgentTells{.at = {Duration(1'000)}, .what = std::move(what)}, /*numbered=*/true);
  }
  /// Another agent in the place of this one.
  void begin_anew() {
    hello_->instance = "second";
    said_ = heard_ = 0;
  }

  void join() {
    make();
    wait_until([this] { return machine_->hello() != nullptr; });
    begin_and_join();
  }
  void begin_and_join() {
    machine_->begin({.run_directory = "/run"});
    wait_until([this] { return machine_->is_ready(); });
    machine_->join({2}, ears());
  }
  RemoteMachine::Ears ears() {
    return {.tell = [this](model::What what) { told_.push_back(std::move(what)); },
            .note = [this](const std::string& note) { notes_ += note + "\n"; },
            .now = [] { return Instant{Duration(500)}; }};
  }
  void run_one_under_a_lease() {
    make(Duration(1'000), Duration(300));
    wait_until([this] { return machine_->hello() != nullptr; });
    begin_and_join();
    start(kOne);
    wait_until([this] { return heard_lines_.size() == 1; });
  }
  void start(model::AttemptKey key) { start(key, {.arguments = {"true"}}); }
  void start(model::AttemptKey key, model::Launch launch) {
    machine_->start({.key = key, .site = {.machine = {2}}}, std::move(launch));
  }
  void wait_until(const std::function<bool()>& holds) {
    const Duration end = sys::EventLoop::now() + sys::kLongEnough;
    while (!holds() && sys::EventLoop::now() < end) loop_.run_once(Duration(10));
    ASSERT_TRUE(holds());
  }
  template <class What>
  std::size_t count() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        told_, [](const model::What& what) { return std::holds_alternative<What>(what); }));
  }

  sys::TemporaryDirectory directory_;
  std::optional<Duration> until_;
  std::optional<UnsharedFiles::Options> unshared_;
  sys::EventLoop loop_;
  sys::Descriptor listener_;
  std::unique_ptr<sys::LineStream> stream_;
  std::unique_ptr<RemoteMachine> machine_;
  std::optional<wire::AgentHello> hello_ =
      wire::AgentHello{.protocol = wire::kAgentProtocol,
                       .program = "trainyard 0",
                       .host = "lab1",
                       .instance = "first",
                       .capacity = {.memory = gb(8), .cpus = model::cpus(4)},
                       .clock = Duration(100'000),
                       .at = {Duration(900)}};
  Duration clock_{100'000};
  Duration told_until_{0};
  bool answers_ = true;
  bool gets_ready_ = true;
  std::uint64_t said_ = 0;
  std::uint64_t heard_ = 0;
  std::uint64_t last_heard_ = 0;  ///< The last line of it that the yard has confirmed.
  std::optional<wire::AgentBegin> begin_;
  std::vector<std::string> heard_lines_;
  std::vector<model::What> told_;
  std::string notes_;
};

}  // namespace trainyard::run
