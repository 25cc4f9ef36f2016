#include "ranks/test_components.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/types.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "trainyard/buffer.h"
#include "trainyard/component.h"
#include "trainyard/rank_context.h"
#include "trainyard/return_code.h"

namespace trainyard::ranks {
namespace {

constexpr ContextKey<std::string> kGreeting{.name = "greeting"};
constexpr ContextKey<std::int64_t> kRound{.name = "round", .sticky = true};

/// Returns when it is asked to stop, and not before.
void wait_for_stop(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait(lock, stop, [] { return false; });
}

class Recorder final : public Component {
 public:
  explicit Recorder(const Arguments& given)
      : names_(given.get<Json>("events").get<std::vector<std::string>>()) {}
  Recorder(Recorder&&) = delete;
  Recorder& operator=(Recorder&&) = delete;
  ~Recorder() override {
    if (hears("print")) std::cout << "the recorder ends\n" << std::flush;
  }
  [[nodiscard]] std::vector<std::string> listens_to() const override { return names_; }
  void handle_event(const RankEvent& event, RankContext& context) override {
    if (hears("print") && event.name == kEndRun) {
      std::cout << "heard " << event.name << '\n' << std::flush;
    }
    if (hears("hang") && event.name == kStartRun) {
      static_cast<void>(context.fire("hangs"));
      std::this_thread::sleep_for(std::chrono::hours(1));
    }
    if (event.name == "ping") static_cast<void>(context.fire("pong"));
    std::unique_lock lock(mutex_);
    heard_.push_back({{"name", event.name}, {"data", event.data}});
    if (event.from_rank) heard_.back()["from"] = *event.from_rank;
    lock.unlock();
    if (event.name == "throw") throw std::runtime_error("the recorder throws");
    if (event.name == "throw_nested") throw_with_a_cause("the recorder cannot read");
    if (event.name == "again") static_cast<void>(context.fire("again", event.data));
    if (event.name == "react")
      static_cast<void>(context.fire("reacted", event.data, Audience::Group));
    if (event.name == "greet") context.set(kGreeting, "from rank").value();
  }
  Json heard() {
    const std::scoped_lock lock(mutex_);
    return heard_;
  }

 private:
  [[nodiscard]] bool hears(std::string_view name) const {
    return std::ranges::find(names_, name) != names_.end();
  }

  std::vector<std::string> names_;
  std::mutex mutex_;
  Json heard_ = Json::array();
};

class Tester final : public Executor {
 public:
  explicit Tester(const Arguments& given)
      : answer_(given.get<int>("answer")), recorder_(given.component<Recorder>("recorder")) {
    const auto fault = given.get<std::string>("fault");
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment of a rank.
    const char* const number = std::getenv("RANK");
    const int at = number == nullptr ? 0 : std::atoi(number);  // NOLINT(cert-err34-c)
    if (fault.empty() || given.get<int>("fault_rank") != at) return;
    if (fault == "throw") throw std::runtime_error("no such file");
    if (fault == "exit") ::_exit(7);
    if (const auto here = given.get<std::string>("here"); !here.empty()) {
      std::ofstream(here) << '\n';
    }
    if (fault == "wait") wait_for_stop(given.stop());
    if (fault == "hang") std::this_thread::sleep_for(std::chrono::hours(1));
  }

  Shareable execute(std::string_view task, const Shareable& input, RankContext& context,
                    std::stop_token stop) override {
    const int rank = context.rank().value_or(-1);
    const bool mine = !input.has("rank") || input.get("rank") == rank;
    Shareable reply;
    reply.set("rank", rank);
    reply.set("answer", answer_);
    if (task == "echo") return echo(input, context);
    if (task == "sum") return sum(input);
    if (task == "fill") return fill(input, context);
    if (task == "heard") reply.set("heard", recorder_->heard());
    if (task == "environment") reply.set("value", environment(input));
    if (task == "wait" && mine) wait_for_stop(stop);
    if (task == "hang" && mine) std::this_thread::sleep_for(std::chrono::hours(1));
    if (task == "print") std::cout << "line of rank " << rank << '\n' << std::flush;
    if (!mine) return input.has("others_wait") ? (wait_for_stop(stop), reply) : reply;
    if (task == "throw") throw std::runtime_error("cannot train");
    if (task == "bad_alloc") throw std::bad_alloc();
    if (task == "exit") ::_exit(input.get("code").get<int>());
    if (task == "kill") {
      std::cerr << "last words" << '\n' << std::flush;
      ::raise(SIGKILL);
    }
    if (task == "code") reply.set_outcome(ReturnCode::EmptyResult, "nothing here");
    if (task == "kill_parent") {
      ::kill(::getppid(), SIGKILL);
      wait_for_stop(stop);
    }
    if (task == "pid") reply.set("pid", ::getpid());
    if (task == "detach") reply.set("pid", detach());
    if (task == "fire") {
      const EventOutcome heard = context.fire(
          "progress", {{"rank", rank}}, input.has("group") ? Audience::Group : Audience::Parent);
      reply.set("errors", heard.errors);
      reply.set("greeting", context.get(kGreeting).value_or("none"));
    }
    if (task == "fire_and_hang") {
      static_cast<void>(context.fire("progress", {{"rank", rank}}));
      std::this_thread::sleep_for(std::chrono::hours(1));
    }
    if (task == "pid_and_hang") {
      static_cast<void>(context.fire("pid", {{"pid", ::getpid()}}));
      std::this_thread::sleep_for(std::chrono::hours(1));
    }
    if (task == "cycle") reply.set("message", context.fire("again", 0).errors);
    if (task == "set") {
      context.set(kGreeting, "from rank " + std::to_string(rank)).value();
      context.set(kRound, std::int64_t{40} + rank).value();
    }
    if (task == "get") {
      reply.set("greeting", context.get(kGreeting).value_or("none"));
      reply.set("round", context.get(kRound).value_or(-1));
      reply.set("ranks", context.ranks());
      reply.set("local_rank", context.local_rank());
    }
    return reply;
  }

 private:
  static Shareable echo(const Shareable& input, const RankContext& context) {
    Shareable reply = input;
    reply.set("rank", context.rank().value_or(-1));
    return reply;
  }
  static Shareable sum(const Shareable& input) {
    Shareable reply;
    for (const auto& [name, buffer] : input.buffers()) {
      const std::span<const float> values = buffer.as<float>();
      reply.set(name, std::accumulate(values.begin(), values.end(), 0.0));
    }
    return reply;
  }
  static Shareable fill(const Shareable& input, RankContext& context) {
    const auto count = input.get("count").get<std::int64_t>();
    Buffer buffer = context.alloc(DType::Float32, {count}).value();
    std::ranges::fill(buffer.fill<float>(), static_cast<float>(context.rank().value_or(-1) + 1));
    Shareable reply;
    reply.set_buffer("filled", buffer);
    for (int i = 1; input.has("names") && i < input.get("names").get<int>(); ++i) {
      reply.set_buffer("filled " + std::to_string(i), buffer);
    }
    return reply;
  }
  static Json environment(const Shareable& input) {
    Json values = Json::object();
    for (const auto& name : input.get("names")) {
      // NOLINTNEXTLINE(concurrency-mt-unsafe): as above.
      const char* const value = std::getenv(name.get_ref<const std::string&>().c_str());
      values[name.get<std::string>()] = value == nullptr ? Json() : Json(value);
    }
    return values;
  }
  /// A process in a session of its own, whose parent is gone.
  static pid_t detach() {
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::setsid();
    ::execl("/bin/sleep", "sleep", "1000", nullptr);
    ::_exit(1);
  }

  int answer_;
  std::shared_ptr<Recorder> recorder_;
};

}  // namespace

ComponentRegistry test_registry() {
  ComponentRegistry registry;
  registry.add<Tester>("tester",
                       {argument("answer", 42), argument("fault", ""), argument("fault_rank", 0),
                        argument("here", ""), argument("padding", ""), component("recorder")});
  registry.add<Recorder>("recorder", {argument("events", ArgumentKind::List)});
  return registry;
}

void throw_with_a_cause(const char* text) {
  try {
    throw std::out_of_range("row 7");
  } catch (...) {
    std::throw_with_nested(std::runtime_error(text));
  }
}

Shareable with(std::initializer_list<std::pair<const char*, Json>> values) {
  Shareable made;
  for (const auto& [name, value] : values) made.set(name, value);
  return made;
}

}  // namespace trainyard::ranks
