// The objects of a pool, each in a dedicated process: the keeper that forks and ends them, the door
// by which they connect, and the outcome of the calls of those that die.
//
// A thread of the pool reads all answers and receives all ends; the caller itself writes a call to
// the socket if there is room. Any thread.
//
//   Down --start()--> Starting --hello, made--> Up
//   Starting, Up --it ends--> Down, or Starting where restart() was asked for
//   Starting, Up --restart(), shutdown()--> Ending --it ends--> the same
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "link/frame_server.h"
#include "model/event.h"
#include "model/ids.h"
#include "process/keeper.h"
#include "ranks/shared_arenas.h"
#include "sys/event_loop.h"
#include "sys/files.h"
#include "sys/tail.h"
#include "sys/waker.h"
#include "trainyard/buffer.h"
#include "trainyard/detail/codec.h"
#include "trainyard/detail/pool_core.h"
#include "trainyard/pool_options.h"
#include "wire/hello.h"
#include "workers/child_home.h"
#include "workers/pool_backend.h"
#include "workers/pool_link.h"

namespace trainyard::workers {

class PoolProcesses final : public PoolBackend {
 public:
  static Result<std::unique_ptr<PoolBackend>> start(const PoolOptions& options,
                                                    detail::PoolMake make);
  PoolProcesses(const PoolOptions& options, sys::Waker waker);
  PoolProcesses(PoolProcesses&&) = delete;
  PoolProcesses& operator=(PoolProcesses&&) = delete;
  ~PoolProcesses() override;

  void send(std::size_t method, detail::RemotePayload arguments,
            std::span<const std::shared_ptr<PoolCall>> calls) override;
  bool restart(int index) override;
  void shutdown(Duration grace) override;
  Result<Buffer> alloc(DType type, Dimensions shape) override {
    return arenas_->alloc(type, std::move(shape));
  }

 private:
  enum class State : std::uint8_t { Down, Starting, Up, Ending };
  struct Child {
    int index = 0;
    State state = State::Down;
    std::uint32_t life = 0;                        ///< 1, 2, ...: which process it is.
    std::string token;                             ///< Admits this life, for one connection.
    std::optional<link::ConnectionId> connection;  ///< The connection that used it.
    std::unique_ptr<PoolLink> link;
    bool running = false;  ///< There is a process, or one has been asked for.
    bool again = false;    ///< When it has ended it begins anew.
    bool to_end = false;   ///< By the thread of the pool, soon.
    bool busy = false;     ///< It was in a call when it was to end.
    bool writes = false;   ///< The pool waits for room in its socket.
    std::optional<CallError> not_made;
    std::string fault;  ///< Its violation, for which it is ended.
    CallError down;     ///< Why there is none.
    std::unique_ptr<sys::Tail> errors;
  };
  using Lock = std::unique_lock<std::mutex>;

  Result<void> prepare(detail::PoolMake make);
  Result<void> listen();
  void run();
  /// Runs `work` with the lock, and then settles without it what it has settled.
  void with_lock(const std::function<void()>& work);
  void fail_open(Child& child, const CallError& error);

  // All below on the thread of the pool, with the lock.
  void look_around();
  void start_child(Child& child);
  [[nodiscard]] Result<void> admit(link::ConnectionId connection, const wire::Hello& hello);
  void welcomed(link::ConnectionId connection);
  void read(Child& child);
  void watch_writing(Child& child);
  void disconnect(Child& child);
  void take_news(const process::KeeperNews& news);
  void has_ended(Child& child, const model::End& end);
  void all_have_ended(const std::string& why);
  /// Orders the process to end, and kills it after the grace.
  void end(Child& child, Duration grace);
  /// Kills the process after `delay` if it is still in this life.
  void kill_after(Duration delay, Child& child, std::string why);
  void end_all(Duration grace);
  [[nodiscard]] bool none_runs() const;
  /// Text that it has printed since the last call, up to a bound.
  static std::string unread_errors(Child& child);
  void show_errors();

  [[nodiscard]] std::string log_of(const Child& child) const;
  [[nodiscard]] static model::AttemptKey key_of(const Child& child);
  void note(const std::string& what) const;

  const PoolOptions options_;
  const std::shared_ptr<sys::Waker> waker_;
  const std::shared_ptr<ranks::SharedArenas> arenas_;
  const std::shared_ptr<PoolReleases> releases_;

  // Used by the thread of the pool.
  sys::EventLoop loop_;
  std::unique_ptr<ChildHome> home_;
  std::optional<sys::RunLock>
      lock_;  ///< Held on the directory of the logs, where that is not private.
  std::unique_ptr<link::FrameServer> server_;
  bool over_ = false;
  bool ends_ = false;  ///< end_all() has been called.

  std::mutex mutex_;
  std::vector<std::unique_ptr<Child>> children_;  ///< Guarded, as all to the next mutex.
  /// Tokens of children that ended before they were let in. They may have connected all the same.
  std::vector<std::string> unused_tokens_;
  std::vector<PoolLink::Settled> settled_;
  std::vector<std::string> notes_;
  std::string prints_;                 ///< Text for standard error.
  std::optional<Duration> shut_down_;  ///< Its grace.
  std::string broken_;                 ///< Why nothing can be started any more.

  std::mutex joining_;
  std::thread thread_;  ///< Guarded by `joining_`.
};

}  // namespace trainyard::workers
