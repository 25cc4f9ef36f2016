// Several objects of one type, each in a process or a thread of its own, whose methods are called
// from here (DI-engine `Supervisor`):
//
//   using Envs = trainyard::Pool<Env, &Env::reset, &Env::step>;      // what can be called
//   auto envs = Envs::start({.count = 8}, [](int index) { return Env(index); });
//   if (!envs) return complain(envs.error().message);
//   auto first = envs->call<&Env::step>(0, action);                   // goes at once
//   auto all = envs->all<&Env::reset>().get(10s);                     // of each, in their order
//   if (auto step = first.get(1s)) use(*step); else complain(step.error().text());
//
// The factory runs in the child, and the object never leaves it. A child that is a process is a
// fork of this program as it was at start(); the methods are named there, so that a call is their
// number and values, nothing that comes can run other code, and what is not named does not compile.
// A method is a member function, a function that takes the object first, or a closure without
// captures of that form.
//
// Arguments and results are values: what nlohmann::json converts both ways, Buffer,
// std::vector<Buffer>, pairs and tuples of these, void. In both kinds of pool they travel the same
// way, as JSON. So no NaN (it is an error; a Buffer holds it), no text that is not UTF-8, and a
// reference parameter is a copy. A Buffer is passed as memory that both sides map: one copy, or
// none when it comes from alloc(); in a pool of threads, as a handle to the same memory, which
// nobody may write any more. The arguments of a call, and its result, may have 8 MiB of JSON and
// 63 buffers; more is a CallError (NotCarried).
//
// A call ends: by its result, or by a CallError that says why not. Not a load balancer: who calls
// says which child. Not a place for calls in calls: a child does one thing at a time, in the order
// in which it was asked.
//
// Any thread may call anything. Includes all of nlohmann/json.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <expected>
#include <functional>
#include <memory>
#include <stop_token>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainyard/buffer.h"
#include "trainyard/detail/codec.h"
#include "trainyard/detail/pool_core.h"
#include "trainyard/detail/pool_values.h"
#include "trainyard/pool_options.h"  // IWYU pragma: export
#include "trainyard/result.h"
#include "trainyard/timeout.h"

namespace trainyard {

template <class T, auto... Methods>
class Pool;

namespace detail {

template <class T, auto... Methods>
class PoolObjectOf final : public PoolObject {
 public:
  PoolObjectOf(const std::function<T(int)>& make, int index) : object_(make(index)) {}

  PoolAnswer call(std::size_t method, RemotePayload arguments) override {
    using Call = PoolAnswer (*)(T&, RemotePayload);
    static constexpr std::array<Call, sizeof...(Methods)> kCalls{&call_one<Methods>...};
    return kCalls.at(method)(object_, std::move(arguments));
  }

 private:
  template <auto Method>
  static PoolAnswer call_one(T& object, RemotePayload from) {
    using Form = MethodOf<decltype(Method)>;
    CallError::Kind kind = CallError::Kind::NotCarried;
    std::string_view what = "its arguments cannot be read";
    try {
      ValueReader reader(std::move(from));
      auto arguments = reader.get<typename Form::Arguments>();
      kind = CallError::Kind::Threw;
      what = {};
      if constexpr (std::is_void_v<typename Form::Result>) {
        Form::template invoke<Method>(object, arguments);
        return {};
      } else {
        const auto result = Form::template invoke<Method>(object, arguments);
        kind = CallError::Kind::NotCarried;
        what = "its result cannot be sent";
        ValueWriter writer;
        writer.put(result);
        return std::move(writer).take();
      }
    } catch (...) {
      return std::unexpected(error_of_current_exception(kind, what));
    }
  }

  T object_;
};

template <class R>
std::expected<R, CallError> read_answer(PoolAnswer answer, int child) {
  if (!answer) return std::unexpected(std::move(answer.error()));
  if constexpr (std::is_void_v<R>) {
    return {};
  } else {
    try {
      return ValueReader(*std::move(answer)).get<R>();
    } catch (...) {
      CallError error =
          error_of_current_exception(CallError::Kind::NotCarried, "its result cannot be read");
      error.child = child;
      return std::unexpected(std::move(error));
    }
  }
}

}  // namespace detail

/// The answer to one call, which comes. One that is let go of is not waited for; the call is made
/// all the same.
template <class R>
class [[nodiscard]] PoolFuture {
 public:
  /// Waits for it, at most so long from now, and takes it: once. After that, also when it is late,
  /// nothing of the call comes any more. `within` is the time until the answer has come. Its JSON
  /// (at most 8 MiB) is read after that, by the thread that calls. The bytes of a Buffer are not
  /// read.
  std::expected<R, CallError> get(Timeout within, const std::stop_token& stop = {}) {
    const detail::PoolCalls calls = std::exchange(calls_, {});
    if (calls.empty()) return std::unexpected(detail::taken_before(child_));
    return detail::read_answer<R>(std::move(detail::take_answers(calls, within, stop).at(0)),
                                  child_);
  }
  /// get() would not wait.
  [[nodiscard]] bool is_answered() const { return detail::are_answered(calls_); }
  [[nodiscard]] int child() const { return child_; }

 private:
  template <class, auto...>
  friend class Pool;
  PoolFuture(int child, std::shared_ptr<workers::PoolCall> call)
      : child_(child), calls_{std::move(call)} {}
  int child_;
  detail::PoolCalls calls_;
};

/// The same of all children.
template <class R>
class [[nodiscard]] PoolFutures {
 public:
  /// As PoolFuture::get(), of all together in so much time: what has come by then is there, in the
  /// order of the children, and the others are late. All answers are read after the last has come
  /// or is late. Again: nothing.
  std::vector<std::expected<R, CallError>> get(Timeout within, const std::stop_token& stop = {}) {
    std::vector<std::expected<R, CallError>> results;
    const detail::PoolCalls calls = std::exchange(calls_, {});
    for (detail::PoolAnswer& each : detail::take_answers(calls, within, stop)) {
      const int child = static_cast<int>(results.size());
      results.push_back(detail::read_answer<R>(std::move(each), child));
    }
    return results;
  }

 private:
  template <class, auto...>
  friend class Pool;
  explicit PoolFutures(detail::PoolCalls calls) : calls_(std::move(calls)) {}
  detail::PoolCalls calls_;
};

/// A handle that is moved, not copied. Its end is that of its children, as shutdown().
template <class T, auto... Methods>
class Pool {
  template <auto Method>
  using Form = detail::MethodOf<decltype(Method)>;
  template <auto Method>
  using ResultOf = typename Form<Method>::Result;

  template <class R>
  static consteval bool returns() {
    if constexpr (std::is_void_v<R>) {
      return true;
    } else {
      return detail::Travels<R>::value;
    }
  }
  static_assert(sizeof...(Methods) > 0, "a pool names the methods that can be called");
  static_assert((detail::Travels<typename Form<Methods>::Arguments>::value && ...) &&
                    (returns<ResultOf<Methods>>() && ...),
                "what goes to a child and comes back is a Buffer, or converts to nlohmann::json "
                "and back (NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE), or is a pair or tuple of these");

 public:
  /// Starts all children, and does not wait for them: calls do. With processes it forks, from a
  /// thread that may: other threads of this program are not there in the children, nor what they
  /// hold locked. `make` returns the object with that index, from 0; with threads it is called by
  /// all of them at once. What it throws is the error of the calls to that child.
  [[nodiscard]] static Result<Pool> start(const PoolOptions& options, std::function<T(int)> make) {
    auto core = detail::PoolCore::start(
        options, [make = std::move(make)](int index) -> std::unique_ptr<detail::PoolObject> {
          return std::make_unique<detail::PoolObjectOf<T, Methods...>>(make, index);
        });
    if (!core) return std::unexpected(std::move(core.error()));
    return Pool(std::move(*core));
  }

  [[nodiscard]] int count() const { return core_->count(); }

  /// Has that child call the method. Never waits and never throws for what is wrong with the call:
  /// that is the answer. Costs the encoding of the arguments, and a copy of the buffers among them
  /// that are larger than 32 KiB and not of alloc().
  template <auto Method, class... A>
  PoolFuture<ResultOf<Method>> call(int child, A&&... arguments) {
    return {child,
            core_->call(child, position<Method>(), write<Method>(std::forward<A>(arguments)...))};
  }
  /// Has all of them call it. The arguments are encoded, and copied, once.
  template <auto Method, class... A>
  PoolFutures<ResultOf<Method>> all(A&&... arguments) {
    return PoolFutures<ResultOf<Method>>(
        core_->call_all(position<Method>(), write<Method>(std::forward<A>(arguments)...)));
  }

  /// A new object in the place of that one, whose state is lost. Calls that are open fail; calls
  /// from now on wait for the new one. Returns at once. A process is ended first, as by shutdown()
  /// with the grace of the options. A thread first comes to the end of the call that it is in.
  std::expected<void, CallError> restart(int child) { return core_->restart(child); }

  /// Ends all children and waits for that; open calls fail. Where they are processes: one that has
  /// nothing to do destroys its object and goes; one in a call gets SIGTERM, and is cut off where
  /// it does not do anything else about it; whoever is still there after `grace` gets SIGKILL.
  /// Threads cannot be ended: this waits for the calls that they are in, however long. Again: no
  /// effect.
  void shutdown(Timeout grace) { core_->shutdown(grace); }

  /// A buffer in memory that the children can map, one of at most 48 in use: filled in place and sent it is not copied. Its
  /// memory is used again when no copy of it is left, here or there.
  [[nodiscard]] Result<Buffer> alloc(DType type, Dimensions shape) {
    return core_->alloc(type, std::move(shape));
  }

 private:
  explicit Pool(std::unique_ptr<detail::PoolCore> core) : core_(std::move(core)) {}

  template <auto Method>
  static consteval std::size_t position() {
    constexpr std::size_t kPosition = detail::position_of<Method, Methods...>();
    static_assert(kPosition < sizeof...(Methods), "a method that the type of the pool names");
    return kPosition;
  }

  template <auto Method, class... A>
  static detail::PoolAnswer write(A&&... arguments) {
    using Arguments = typename Form<Method>::Arguments;
    static_assert(std::tuple_size_v<Arguments> == sizeof...(A), "as many arguments as it takes");
    static_assert(std::is_convertible_v<std::tuple<A&&...>, Arguments>,
                  "arguments that convert to what it takes");
    try {
      const Arguments values(std::forward<A>(arguments)...);
      detail::ValueWriter writer;
      writer.put(values);
      return std::move(writer).take();
    } catch (...) {
      return std::unexpected(detail::error_of_current_exception(CallError::Kind::NotCarried,
                                                                "its arguments cannot be sent"));
    }
  }

  std::unique_ptr<detail::PoolCore> core_;
};

}  // namespace trainyard
