// For tests alone: servers of NATS on loopback, machines of a run as processes of their own, and
// somebody who speaks to a server as no program of ours does.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/time.h"
#include "sys/descriptor.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"
#include "trainyard/parallel.h"
#include "workers/parallel_run.h"

namespace trainyard::workers {

inline sockaddr_in on_loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/// Nobody listens there.
inline int free_port() {
  const sys::Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  check(socket.is_open(), "a socket");
  sockaddr_in address = on_loopback(0);
  check(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "a port");
  socklen_t size = sizeof address;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

/// A connection, or none.
inline sys::Descriptor dial(int port) {
  sys::Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = on_loopback(port);
  const int done =
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return done == 0 ? std::move(socket) : sys::Descriptor();
}

class NatsServer {
 public:
  /// With what stands in its configuration, beside where it listens.
  explicit NatsServer(std::string configuration = "", int port = free_port())
      : configuration_(std::move(configuration)), port_(port) {
    start();
  }
  NatsServer(const NatsServer&) = delete;
  NatsServer& operator=(const NatsServer&) = delete;
  ~NatsServer() { kill(); }

  void start() {
    directory_.write("conf", "listen: 127.0.0.1:" + std::to_string(port_) + "\n" + configuration_);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const int log = ::open((directory_ / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      if (log < 0) ::_exit(126);
      ::dup2(log, STDOUT_FILENO);
      ::dup2(log, STDERR_FILENO);
      ::execlp("nats-server", "nats-server", "-c", (directory_ / "conf").c_str(), nullptr);
      ::_exit(127);
    }
    check(sys::eventually([this] { return dial(port_).is_open(); }),
          "a server of NATS: apt install nats-server");
  }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  }

  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] std::string address(std::string_view who = "",
                                    std::string_view scheme = "nats://") const {
    return std::string(scheme) + std::string(who) + "127.0.0.1:" + std::to_string(port_);
  }

 private:
  sys::TemporaryDirectory directory_;
  std::string configuration_;
  int port_;
  pid_t pid_ = 0;
};

/// Refuses whoever connects, as a server does that does not know them, and counts them.
///
/// Connections wait in the system until start(). Fork the processes that connect before it: a child
/// of a process with several threads may not start threads of its own under ThreadSanitizer.
class RefusingServer {
 public:
  RefusingServer() {
    sockaddr_in address = on_loopback(port_);
    check(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
              ::listen(socket_.get(), 16) == 0,
          "a port");
  }

  void start() {
    thread_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) refuse_next();
    });
  }

  [[nodiscard]] std::string address() const { return "nats://127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] int refused() const { return refused_; }

 private:
  void refuse_next() {
    pollfd ready{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, 10) != 1) return;
    const sys::Descriptor client(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    say(client, R"(INFO {"server_id":"x","version":"2.9.0","proto":1,"max_payload":65536,)"
                R"("auth_required":true,"nonce":"bm9uY2Vub25jZQ"})"
                "\r\n");
    std::string heard;
    std::array<char, 4096> bytes{};
    while (heard.find("PING") == std::string::npos) {
      const ssize_t count = ::recv(client.get(), bytes.data(), bytes.size(), 0);
      if (count <= 0) return;
      heard.append(bytes.data(), static_cast<std::size_t>(count));
    }
    ++refused_;
    say(client, "-ERR 'Authorization Violation'\r\n");
  }
  static void say(const sys::Descriptor& client, std::string_view text) {
    static_cast<void>(::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL));
  }

  int port_ = free_port();
  sys::Descriptor socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::atomic<int> refused_ = 0;
  std::jthread thread_;
};

/// Lets a client subscribe, and sends it these bytes of a message: a text for each connection. The
/// first ends with its text, as that of a server that is killed.
class BrokenServer {
 public:
  /// Each "SUBJECT" stands for the subject and the number of the subscription, as MSG has them.
  explicit BrokenServer(std::vector<std::string> texts) : texts_(std::move(texts)) {
    sockaddr_in address = on_loopback(port_);
    check(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
              ::listen(socket_.get(), 16) == 0,
          "a port");
    thread_ = std::jthread([this] {
      std::vector<sys::Descriptor> clients;
      for (const std::string& text : texts_) {
        clients.emplace_back(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        serve(clients.back(), text);
        if (clients.size() < texts_.size()) clients.back() = sys::Descriptor();
      }
      // The last client stays until it goes.
      char byte = 0;
      while (::recv(clients.back().get(), &byte, 1, 0) > 0) continue;
    });
  }
  ~BrokenServer() { ::shutdown(socket_.get(), SHUT_RDWR); }
  BrokenServer(const BrokenServer&) = delete;
  BrokenServer& operator=(const BrokenServer&) = delete;

  [[nodiscard]] std::string address() const { return "nats://127.0.0.1:" + std::to_string(port_); }

 private:
  static void serve(const sys::Descriptor& client, std::string text) {
    say(client, R"(INFO {"server_id":"x","version":"2.9.0","proto":1,"max_payload":65536})"
                "\r\n");
    read_until(client, "PING\r\n");
    say(client, "PONG\r\n");
    // "SUB trainyard.test.machine.1  1"
    read_until(client, "SUB ");
    std::string subject = read_until(client, "\r\n");
    subject.resize(subject.find('\r'));
    constexpr std::string_view kPlace = "SUBJECT";
    for (std::size_t at = text.find(kPlace); at != std::string::npos; at = text.find(kPlace)) {
      text.replace(at, kPlace.size(), subject);
    }
    say(client, text);
  }
  static std::string read_until(const sys::Descriptor& client, std::string_view end) {
    std::string heard;
    char byte = 0;
    while (!heard.ends_with(end) && ::recv(client.get(), &byte, 1, 0) == 1) heard += byte;
    return heard;
  }
  static void say(const sys::Descriptor& client, std::string_view text) {
    static_cast<void>(::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL));
  }

  std::vector<std::string> texts_;
  int port_ = free_port();
  sys::Descriptor socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::jthread thread_;
};

/// Lets the system take connections, and never says anything.
class SilentServer {
 public:
  SilentServer() {
    sockaddr_in address = on_loopback(port_);
    check(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
              ::listen(socket_.get(), 16) == 0,
          "a port");
  }

  [[nodiscard]] std::string address() const { return "nats://127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] int descriptor() const { return socket_.get(); }
  /// The next connection; waits for it.
  [[nodiscard]] sys::Descriptor accept() const {
    return sys::Descriptor(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }

 private:
  int port_ = free_port();
  sys::Descriptor socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
};

/// A process that has a part of a run, with directories of its own.
class MachineProcess {
 public:
  /// 20 ms suffice between two claims: all servers are on this machine.
  MachineProcess(ParallelOptions options, std::function<void(Worker&)> work,
                 ParallelRun::Periods periods = {.ask_every = Duration(20)})
      : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setenv("TMPDIR", directory_.path().c_str(), 1);
    ::setenv("XDG_RUNTIME_DIR", directory_.path().c_str(), 1);
    options.note = [this](std::string_view what) {
      std::ofstream(directory_ / "notes", std::ios::app) << what << '\n' << std::flush;
    };
    const ParallelResult result = run_in_forks(options, std::move(work), {}, periods);
    {
      std::ofstream file(directory_ / "result");
      file << (result ? "well" : result.text()) << (result.stopped ? " (stopped)" : "");
    }
    std::filesystem::rename(directory_ / "result", directory_ / "done");
    ::_exit(0);
  }
  MachineProcess(const MachineProcess&) = delete;
  MachineProcess& operator=(const MachineProcess&) = delete;
  ~MachineProcess() { kill(); }

  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  }
  void suspend() const { ::kill(pid_, SIGSTOP); }
  void resume() const { ::kill(pid_, SIGCONT); }
  /// "well", or what went wrong.
  std::string result() {
    const bool ended =
        sys::eventually([this] { return ::waitpid(pid_, nullptr, WNOHANG) == pid_; });
    if (!ended) {
      kill();
      return "it did not end\n" + notes();
    }
    pid_ = 0;
    return text_of("done");
  }
  [[nodiscard]] bool has_ended() const { return std::filesystem::exists(directory_ / "done"); }
  [[nodiscard]] std::string notes() const { return text_of("notes"); }

 private:
  [[nodiscard]] std::string text_of(std::string_view name) const {
    std::ifstream file(directory_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  sys::TemporaryDirectory directory_;
  pid_t pid_ = 0;
};

/// An event of one process for which another one waits.
class Flag {
 public:
  void raise() const { std::ofstream(directory_ / "flag") << 'x'; }
  [[nodiscard]] bool is_raised() const { return std::filesystem::exists(directory_ / "flag"); }
  [[nodiscard]] bool wait() const {
    return sys::eventually([this] { return is_raised(); });
  }

 private:
  sys::TemporaryDirectory directory_;
};

/// Speaks the protocol of the servers by hand.
class RawClient {
 public:
  explicit RawClient(int port) : socket_(dial(port)) {
    say("CONNECT {\"verbose\":false,\"pedantic\":false,\"echo\":false}\r\n");
  }
  void subscribe(const std::string& subject) { say("SUB " + subject + " 1\r\n"); }
  void publish(const std::string& subject, const std::string& message) {
    say("PUB " + subject + " " + std::to_string(message.size()) + "\r\n" + message + "\r\n");
  }
  /// Waits until the received text contains `part`, and returns the text.
  std::string wait_for(std::string_view part) {
    sys::eventually([&] {
      pollfd ready{.fd = socket_.get(), .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, 10) == 1) {
        std::array<char, 4096> bytes{};
        const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
        if (count > 0) heard_.append(bytes.data(), static_cast<std::size_t>(count));
      }
      return heard_.find(part) != std::string::npos;
    });
    return heard_;
  }
  /// All that was said has been passed on.
  void flush() {
    heard_.clear();
    say("PING\r\n");
    wait_for("PONG");
  }

 private:
  void say(const std::string& text) {
    check(::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
              static_cast<ssize_t>(text.size()),
          "a server that listens");
  }
  sys::Descriptor socket_;
  std::string heard_;
};

}  // namespace trainyard::workers
