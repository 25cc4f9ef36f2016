#include "trainyard/exchange.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <stop_token>

#include <gtest/gtest.h>

#include "trainyard/event_bus.h"
#include "trainyard/parallel.h"
#include "workers/test_workers.h"

namespace trainyard::workers {
namespace {

using namespace std::chrono_literals;

struct Shared : Context {
  std::int64_t env_step = 0;
  std::int64_t train_iter = 0;
  std::vector<std::string> episodes;
  std::vector<float> rewards;
  static constexpr auto kept = keep<&Shared::env_step, &Shared::train_iter>;
};

ParallelOptions of_roles(std::vector<std::vector<Role>> roles) {
  return {.workers = static_cast<int>(roles.size()), .roles = std::move(roles)};
}

Exchange<Shared> exchange_of(const Worker& worker, Pipeline<Shared>& loop) {
  Exchange<Shared> exchange(worker, loop);
  exchange.append<&Shared::episodes>(role::kCollector)
      .append<&Shared::rewards>(role::kCollector)
      .add<&Shared::env_step>(role::kCollector)
      .set<&Shared::train_iter>(role::kLearner)
      .waits_for(role::kLearner, role::kCollector, 60s);
  return exchange;
}

/// Two collectors of 20 iterations each; what the learner has in the end is what both have made.
TEST(Exchange, CarriesMembersBetweenRoles) {
  const auto result = parallel(
      of_roles({{role::kLearner}, {role::kCollector}, {role::kCollector}}), [](Worker& worker) {
        constexpr std::int64_t kIterations = 20;
        Pipeline<Shared> loop(worker.pipeline());
        std::int64_t episodes = 0;
        float rewards = 0;
        loop.use("exchange", exchange_of(worker, loop));
        loop.use("collect",
                 [&](Shared& it) {
                   it.episodes = {"a", "b"};
                   it.rewards.assign(10'000, 0.5F);
                   it.env_step += 5;
                 },
                 {.roles = {role::kCollector}});
        loop.use("learn",
                 [&](Shared& it) {
                   need(it.rewards.size() == it.episodes.size() * 5'000, "what belongs together");
                   episodes += static_cast<std::int64_t>(it.episodes.size());
                   for (const float each : it.rewards) rewards += each;
                   ++it.train_iter;
                   if (it.env_step == std::int64_t{2} * 5 * kIterations)
                     loop.finish("all is learned");
                 },
                 {.roles = {role::kLearner}});
        worker.connect(
            loop, worker.has_role(role::kLearner) ? follow_nobody : follow_role(role::kLearner));
        const bool collects = worker.has_role(role::kCollector);
        const RunResult ended = collects ? loop.run({.max_steps = kIterations}) : loop.run();
        need(static_cast<bool>(ended), ended.why);
        if (!collects) {
          need(episodes == std::int64_t{2} * 2 * kIterations, "all episodes");
          need(rewards == 2 * kIterations * 5'000, "all rewards");
        } else {
          need(loop.context().env_step == 5 * kIterations, "its own steps alone");
        }
      });
  EXPECT_TRUE(result) << result.text();
}

TEST(Exchange, PutsTheLastValueInThePlaceOfTheValueOfAnotherWorker) {
  const auto result =
      parallel(of_roles({{role::kLearner}, {role::kCollector}}), [](Worker& worker) {
        Pipeline<Shared> loop(worker.pipeline());
        loop.use("exchange",
                 Exchange<Shared>(worker, loop).set<&Shared::train_iter>(role::kLearner));
        loop.use("learn", [](Shared& it) { it.train_iter += 7; }, {.roles = {role::kLearner}});
        worker.connect(loop, follow_nobody);
        const bool learns = worker.has_role(role::kLearner);
        if (learns) need(static_cast<bool>(loop.run({.max_steps = 3})), "a run");
        need(worker.barrier("sent"));
        if (!learns) {
          loop.context().train_iter = 100;
          need(static_cast<bool>(loop.run({.max_steps = 1})), "a run");
        }
        need(loop.context().train_iter == 21,
             "21 and not " + std::to_string(loop.context().train_iter));
        need(worker.barrier("end"));
      });
  EXPECT_TRUE(result) << result.text();
}

/// Whatever the order of the steps.
TEST(Exchange, AddsWhatHasGrownSinceTheRunBegan) {
  const auto result =
      parallel(of_roles({{role::kLearner}, {role::kCollector}}), [](Worker& worker) {
        Pipeline<Shared> loop(worker.pipeline());
        loop.use("collect", [](Shared& it) { it.env_step += 5; }, {.roles = {role::kCollector}});
        loop.use("exchange", exchange_of(worker, loop));
        loop.use("learn",
                 [&](Shared& it) {
                   if (it.env_step >= 115) loop.finish("all is learned");
                 },
                 {.roles = {role::kLearner}});
        need(resume(loop,
                    Json::parse(R"({"total_step":7,"kept":{"env_step":100,"train_iter":0}})")));
        worker.connect(loop, follow_nobody);
        const bool learns = worker.has_role(role::kLearner);
        const RunResult ended = learns ? loop.run() : loop.run({.max_steps = 3});
        need(static_cast<bool>(ended), ended.why);
        need(loop.context().env_step == 115, "both at 115");
      });
  EXPECT_TRUE(result) << result.text();
}

TEST(Exchange, WaitsNoLongerThanItsDeadlineAndSaysForWhom) {
  const auto result =
      parallel(of_roles({{role::kLearner}, {role::kCollector}}), [](Worker& worker) {
        Pipeline<Shared> loop(worker.pipeline());
        Exchange<Shared> exchange(worker, loop);
        exchange.append<&Shared::episodes>(role::kCollector)
            .waits_for(role::kLearner, role::kCollector, 20ms);
        loop.use("exchange", std::move(exchange));
        worker.connect(loop, follow_nobody);
        if (worker.has_role(role::kLearner)) {
          need(
              loop.run({.max_steps = 1}).why ==
                  "step 'exchange': std::runtime_error: nothing new has come in 0.02 s of worker 1 "
                  "(collector)",
              "a deadline");
        }
        const auto met = worker.barrier("end");
        need(met.has_value(), "the others");
      });
  EXPECT_TRUE(result) << result.text();
}

TEST(Exchange, EndsItsWaitWhenTheOthersEnd) {
  const auto result =
      parallel(of_roles({{role::kLearner}, {role::kCollector}}), [](Worker& worker) {
        Pipeline<Shared> loop(worker.pipeline());
        if (worker.has_role(role::kLearner)) loop.use("exchange", exchange_of(worker, loop));
        loop.use("nothing", [](Shared&) {});
        worker.connect(loop);
        const RunResult ended =
            worker.has_role(role::kLearner) ? loop.run() : loop.run({.max_steps = 3});
        need(static_cast<bool>(ended), ended.why);
      });
  EXPECT_TRUE(result) << result.text();
}

TEST(Exchange, EndsItsWaitWhenNobodyIsLeftWhoCouldSend) {
  const auto result =
      parallel(of_roles({{role::kLearner}, {role::kCollector}}), [](Worker& worker) {
        Pipeline<Shared> loop(worker.pipeline());
        loop.use("exchange", exchange_of(worker, loop));
        loop.use("collect", [](Shared& it) { it.env_step += 5; }, {.roles = {role::kCollector}});
        worker.connect(loop, follow_nobody);
        if (worker.has_role(role::kCollector)) {
          need(static_cast<bool>(loop.run({.max_steps = 3})), "a run");
          return;
        }
        const RunResult ended = loop.run();
        need(ended.why.starts_with(
                 "step 'exchange': std::runtime_error: nothing more comes of the role "
                 "'collector': worker 1 (collector) has ended (max steps"),
             "who has ended, and not " + ended.why);
        need(loop.context().env_step == 15, "all that came before");
      });
  EXPECT_TRUE(result) << result.text();
}

TEST(Exchange, EndsItsWaitWhereNobodyHasTheRoleOrIsHeard) {
  const auto wait_for = [](const std::string& why) {
    return [why](Worker& worker) {
      Pipeline<Shared> loop(worker.pipeline());
      loop.use("exchange", exchange_of(worker, loop));
      worker.connect(loop, follow_nobody);
      if (worker.has_role(role::kLearner)) {
        const RunResult ended = loop.run();
        need(ended.why == "step 'exchange': std::runtime_error: " + why, "not " + ended.why);
      }
      need(worker.barrier("end"));
    };
  };
  const auto nobody = parallel(
      of_roles({{role::kLearner}, {role::kLearner}}),
      wait_for("nothing comes of the role 'collector': no other worker of the run has it"));
  EXPECT_TRUE(nobody) << nobody.text();
  ParallelOptions alone = of_roles({{role::kLearner}, {role::kCollector}});
  alone.topology = Topology::Alone;
  const auto unheard =
      parallel(alone, wait_for("nothing comes of the role 'collector': in the topology 'alone' "
                               "worker 0 does not hear worker 1 (collector)"));
  EXPECT_TRUE(unheard) << unheard.text();
}

/// A learner that waits for what a collector sends, which is killed in its third iteration.
ParallelResult learn_from_one_that_is_killed(ParallelOptions options) {
  options.note = [](std::string_view) {};
  const bool recovers = options.auto_recover;
  return parallel(options, [recovers](Worker& worker) {
    Pipeline<Shared> loop(worker.pipeline());
    loop.use("exchange", exchange_of(worker, loop));
    loop.use("collect",
             [&](Shared& it) {
               it.env_step += 5;
               if (worker.life() == 1 && it.env_step == 15) std::raise(SIGKILL);
               // More than the learner takes, and less than may wait for a learner that is slow.
               if (it.env_step == 500) loop.finish("all is collected");
             },
             {.roles = {role::kCollector}});
    loop.use("learn",
             [&](Shared& it) {
               ++it.train_iter;
               if (it.env_step >= 50) loop.finish("all is learned");
             },
             {.roles = {role::kLearner}});
    const bool learns = worker.has_role(role::kLearner);
    worker.connect(loop, learns ? follow_nobody : follow_role(role::kLearner));
    const RunResult ended = loop.run();
    need(static_cast<bool>(ended) == recovers, "another end than: " + ended.why);
    if (!learns) return;
    need(ended.why == "all is learned" || !recovers, "its own end, and not " + ended.why);
    const std::int64_t steps = loop.context().env_step;
    need(steps % 5 == 0 && (recovers ? steps >= 50 : steps <= 10), "whole iterations");
  });
}

TEST(Exchange, EndsItsWaitWhenACollectorIsKilled) {
  const auto result =
      learn_from_one_that_is_killed(of_roles({{role::kLearner}, {role::kCollector}}));
  ASSERT_EQ(result.failures.size(), 1U) << result.text();
  EXPECT_EQ(result.failures[0].node, 1);
  EXPECT_EQ(result.failures[0].what, "was killed by signal 9");
}

TEST(Exchange, GoesOnWithWhatACollectorSendsThatHasBegunAnew) {
  ParallelOptions options = of_roles({{role::kLearner}, {role::kCollector}});
  options.auto_recover = true;
  options.retry_delay = 1ms;
  const auto result = learn_from_one_that_is_killed(options);
  EXPECT_TRUE(result) << result.text();
  EXPECT_EQ(result.retries, 1);
}

TEST(Exchange, NamesTheEventAndTheMemberOfWhatDoesNotFit) {
  struct Case {
    detail::Bundle bundle;
    std::string error;
  };
  const std::vector<Case> cases{
      {{.json = R"({"rewards":0})", .buffers = {Buffer::copy_of<double>({1}, {1})}},
       ", member 'rewards': the buffer contains float64, not float32: send it as float32 (NumPy: "
       "array.astype('float32')), or read it as float64"},
      {{.json = R"({"rewards":1})", .buffers = {Buffer::copy_of<float>({1}, {1})}},
       ", member 'rewards': 1 does not fit: not the index of one of the 1 buffers that came with "
       "it"},
      {{.json = R"({"env_step":1.5})"},
       ", member 'env_step': 1.5 does not fit: no integer of its size"},
      {{.json = R"({"env_step":9223372036854775807})"},
       ", member 'env_step': 9223372036854775807 does not fit: with 1 it makes no integer of its "
       "size"},
      {{.json = R"({"episodes":{"a":1}})"},
       ", member 'episodes': [json.exception.type_error.302] type must be array, but is object"},
      {{.json = "[1,2]"}, ": [1,2] does not fit: no object of members"}};
  const auto result =
      parallel(of_roles({{role::kLearner}, {role::kCollector}}), [&](Worker& worker) {
        for (std::size_t i = 0; i < cases.size(); ++i) {
          const std::string name = "case-" + std::to_string(i);
          Pipeline<Shared> loop(worker.pipeline());
          Exchange<Shared> exchange(worker, loop, name);
          exchange.append<&Shared::episodes>(role::kCollector)
              .append<&Shared::rewards>(role::kCollector)
              .add<&Shared::env_step>(role::kCollector)
              .waits_for(role::kLearner, role::kCollector, 30s);
          loop.use("exchange", std::move(exchange));
          worker.connect(loop, follow_nobody);
          need(worker.barrier("listens to " + name));
          if (worker.has_role(role::kCollector)) {
            detail::emit_bundle(loop.events(), name + ".collector", cases[i].bundle, false);
          } else {
            loop.context().env_step = 1;
            const RunResult ended = loop.run({.max_steps = 1});
            need(ended.why == "step 'exchange': std::runtime_error: event '" + name +
                                  ".collector'" + cases[i].error,
                 "why and not " + ended.why);
          }
        }
        need(worker.barrier("end"));
      });
  EXPECT_TRUE(result) << result.text();
}

TEST(Exchange, EndsItsWaitAsABarrierDoesWhenAListenerHasFailedThePipeline) {
  for (const bool exchanges : {true, false}) {
    const auto result =
        parallel(of_roles({{role::kLearner}, {role::kCollector}}), [&](Worker& worker) {
          Pipeline<Shared> loop(worker.pipeline());
          if (exchanges) loop.use("exchange", exchange_of(worker, loop));
          if (!exchanges) loop.use("barrier", BarrierStep<Shared>(worker, "never", loop));
          const Subscription heard =
              loop.events().on("bad", [](const Json&) { throw std::runtime_error("boom"); });
          worker.connect(loop, follow_nobody);
          if (worker.has_role(role::kLearner)) {
            const RunResult ended = loop.run();
            need(ended.why == "event 'bad': std::runtime_error: boom", "not " + ended.why);
          } else {
            need(worker.ready());
            loop.events().emit("bad", nullptr, remote_only);
          }
          need(worker.barrier("end", 30s));
        });
    EXPECT_TRUE(result) << result.text();
  }
}

TEST(Exchange, WaitsForEverAsModelsAndBarriersDoWithTheLongestTime) {
  const auto result =
      parallel(of_roles({{role::kLearner}, {role::kCollector}}), [](Worker& worker) {
        Pipeline<Shared> loop(worker.pipeline());
        Exchange<Shared> exchange(worker, loop);
        exchange.add<&Shared::env_step>(role::kCollector)
            .waits_for(role::kLearner, role::kCollector, std::chrono::hours::max());
        loop.use("exchange", std::move(exchange));
        loop.use("use", UseModel<Shared>(worker, loop, "policy", [](Shared&, const Buffer&) {},
                                         {.within = std::chrono::milliseconds::max()}));
        loop.use("send", SendModel<Shared>(worker, loop, "policy", [](Shared&) {
                   return Buffer::copy_of<float>({1}, {1});
                 }));
        loop.use("collect", [](Shared& it) { it.env_step += 5; }, {.roles = {role::kCollector}});
        worker.connect(loop, follow_nobody);
        need(worker.ready(0, std::chrono::hours::max()));
        const RunResult ended = loop.run({.max_steps = 2});
        need(static_cast<bool>(ended), ended.why);
        need(worker.barrier("end", std::chrono::hours::max()));
      });
  EXPECT_TRUE(result) << result.text();
}

TEST(Exchange, DoesNotWaitInARunThatIsToEndAlready) {
  EventBus bus;
  detail::Inbox inbox;
  inbox.listen(bus, "mine", false);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(inbox.wait(std::chrono::hours(1), stop.get_token()).value());
}

TEST(Exchange, DoesNothingAlone) {
  Pipeline<Shared> loop;
  const auto result = parallel({}, [&](Worker& worker) {
    loop.use("exchange", exchange_of(worker, loop)).use("adds", [](Shared& it) {
      it.env_step += 2;
    });
    need(static_cast<bool>(loop.run({.max_steps = 3})), "a run");
  });
  EXPECT_TRUE(result) << result.text();
  EXPECT_EQ(loop.context().env_step, 6);
}

/// Events that a worker sends before a barrier have come when another worker has passed it.
TEST(BarrierStep, MeetsTheOthersOnTheWayForwardAndAgainOnTheWayBack) {
  const auto result = parallel(quiet(3), [](Worker& worker) {
    constexpr int kIterations = 20;
    Pipeline<Shared> loop(worker.pipeline());
    std::atomic<int> forward = 0;
    std::atomic<int> back = 0;
    const Subscription on_forward = loop.events().on("forward", [&](const Json&) { ++forward; });
    const Subscription on_back = loop.events().on("back", [&](const Json&) { ++back; });
    int iterations = 0;
    loop.use("outer", [&](Shared&) -> Step {
      ++iterations;
      loop.events().emit("forward", nullptr, remote_only);
      co_yield after;
      need(back == 2 * iterations, "that both others are on their way back");
    });
    loop.use("barrier", BarrierStep<Shared>(worker, "epoch", loop));
    loop.use("inner", [&](Shared&) -> Step {
      need(forward == 2 * iterations, "that both others have begun this iteration, and no other");
      co_yield after;
      loop.events().emit("back", nullptr, remote_only);
    });
    worker.connect(loop, follow_nobody);
    const RunResult ended = loop.run({.max_steps = kIterations});
    need(static_cast<bool>(ended), ended.why);
    need(iterations == kIterations, "all iterations");
  });
  EXPECT_TRUE(result) << result.text();
}

TEST(ModelExchange, KeepsCollectorsInStepWithTheLearner) {
  const auto result =
      parallel(of_roles({{role::kLearner}, {role::kCollector}}), [](Worker& worker) {
        Pipeline<Shared> loop(worker.pipeline());
        std::vector<float> seen;
        loop.use("use", UseModel<Shared>(worker, loop, "policy", [&](Shared&, const Buffer& it) {
                   seen.push_back(it.as<float>()[0]);
                   if (seen.back() == 5) loop.finish("the last one");
                 }));
        loop.use("count", [](Shared& it) { ++it.train_iter; });
        loop.use("send", SendModel<Shared>(worker, loop, "policy", [](Shared& it) {
                   return Buffer::copy_of<float>(
                       {20'000}, std::vector<float>(20'000, static_cast<float>(it.train_iter)));
                 }));
        worker.connect(loop, follow_nobody);
        const bool learns = worker.has_role(role::kLearner);
        // The collector goes on until it has the last one.
        const RunResult ended = learns ? loop.run({.max_steps = 5}) : loop.run();
        need(static_cast<bool>(ended), ended.why);
        if (worker.has_role(role::kCollector)) {
          need(seen.back() == 5 && std::ranges::is_sorted(seen) &&
                   std::ranges::adjacent_find(seen) == seen.end(),
               "a new one in each iteration");
        }
      });
  EXPECT_TRUE(result) << result.text();
}

TEST(ModelExchange, SendsAModelInTheFirstIterationOfEachPeriod) {
  const auto result =
      parallel(of_roles({{role::kLearner}, {role::kCollector}}), [](Worker& worker) {
        Pipeline<Shared> loop(worker.pipeline());
        std::vector<float> used;
        std::vector<float> sent;
        loop.use("use", UseModel<Shared>(worker, loop, "policy", [&](Shared&, const Buffer& it) {
                   used.push_back(it.as<float>()[0]);
                 }));
        const auto weights = [&](Shared& it) {
          sent.push_back(static_cast<float>(it.total_step));
          return Buffer::copy_of<float>({1}, {sent.back()});
        };
        loop.use("send", SendModel<Shared>(worker, loop, "policy", weights, {.period = 4}));
        worker.connect(loop, follow_nobody);
        const bool learns = worker.has_role(role::kLearner);
        if (learns) need(static_cast<bool>(loop.run({.max_steps = 14})), "a run");
        need(worker.barrier("sent"));
        if (!learns) need(static_cast<bool>(loop.run({.max_steps = 1})), "a run");
        need(sent == (learns ? std::vector<float>{0, 4, 8, 12} : std::vector<float>{}),
             "a model in every fourth iteration");
        need(used == (learns ? std::vector<float>{} : std::vector<float>{12}), "the last one");
        need(worker.barrier("end"));
      });
  EXPECT_TRUE(result) << result.text();
}

TEST(ModelExchange, GoesOnWithAnOldModelAsLongAsItMay) {
  const auto result =
      parallel(of_roles({{role::kLearner}, {role::kCollector}}), [](Worker& worker) {
        Pipeline<Shared> loop(worker.pipeline());
        int used = 0;
        loop.use("use",
                 UseModel<Shared>(worker, loop, "policy", [&](Shared&, const Buffer&) { ++used; },
                                  {.max_lag = 3, .within = 20ms}));
        loop.use("send", SendModel<Shared>(worker, loop, "policy", [](Shared&) {
                   return Buffer::copy_of<float>({1}, {1});
                 }));
        worker.connect(loop, follow_nobody);
        const bool learns = worker.has_role(role::kLearner);
        if (learns) need(static_cast<bool>(loop.run({.max_steps = 1})), "a run");
        need(worker.barrier("sent").has_value(), "the other one");
        if (!learns) {
          const RunResult ended = loop.run({.max_steps = 10});
          need(used == 1, "the one that was retained");
          need(ended.steps == 4, "three more iterations and not " + std::to_string(ended.steps));
          need(ended.why ==
                   "step 'use': std::runtime_error: model 'policy': nothing new has come in 0.02 s "
                   "of worker 0 (learner)",
               "why and not " + ended.why);
        }
        need(worker.barrier("end"));
      });
  EXPECT_TRUE(result) << result.text();
}

TEST(ModelExchange, EndsItsWaitWhenTheLearnerHasEnded) {
  const auto result =
      parallel(of_roles({{role::kLearner}, {role::kCollector}}), [](Worker& worker) {
        Pipeline<Shared> loop(worker.pipeline());
        int used = 0;
        loop.use("use",
                 UseModel<Shared>(worker, loop, "policy", [&](Shared&, const Buffer&) { ++used; }));
        loop.use("send", SendModel<Shared>(worker, loop, "policy", [](Shared&) {
                   return Buffer::copy_of<float>({1}, {1});
                 }));
        worker.connect(loop, follow_nobody);
        if (worker.has_role(role::kLearner)) {
          need(static_cast<bool>(loop.run({.max_steps = 1})), "a run");
          return;
        }
        const RunResult ended = loop.run();
        need(used == 1, "the one that came before");
        need(ended.why.starts_with(
                 "step 'use': std::runtime_error: model 'policy': nothing more comes of the role "
                 "'learner': worker 0 (learner) has ended (max steps"),
             "who has ended, and not " + ended.why);
      });
  EXPECT_TRUE(result) << result.text();
}

TEST(ModelExchange, NamesWhatAModelLacks) {
  struct Case {
    detail::Bundle bundle;
    std::string error;
  };
  const std::vector<Buffer> one{Buffer::copy_of<float>({1}, {1})};
  const std::vector<Case> cases{
      {{.json = R"({"made_ms":5})", .buffers = one},
       ", 'version' of a model: no integer of its size"},
      {{.json = R"([1])", .buffers = one}, ", 'made_ms' of a model: no number"},
      {{.json = R"({"version":1,"made_ms":5})"}, ": a model is one buffer, and 0 came"}};
  const auto result =
      parallel(of_roles({{role::kLearner}, {role::kCollector}}), [&](Worker& worker) {
        for (std::size_t i = 0; i < cases.size(); ++i) {
          const std::string name = "case-" + std::to_string(i);
          Pipeline<Shared> loop(worker.pipeline());
          loop.use("use", UseModel<Shared>(worker, loop, name, [](Shared&, const Buffer&) {}));
          worker.connect(loop, follow_nobody);
          if (worker.has_role(role::kLearner)) {
            detail::emit_bundle(loop.events(), "model." + name, cases[i].bundle, true);
          }
          need(worker.barrier("sent " + name));
          if (worker.has_role(role::kLearner)) continue;
          const RunResult ended = loop.run({.max_steps = 1});
          need(ended.why ==
                   "step 'use': std::runtime_error: event 'model." + name + "'" + cases[i].error,
               "why and not " + ended.why);
        }
        need(worker.barrier("end"));
      });
  EXPECT_TRUE(result) << result.text();
}

/// Each waits for the other, and what the collector has sent meanwhile came to nobody.
TEST(ModelExchange, GoesOnWithoutANewModelWhereTheLearnerHasBegunAgain) {
  ParallelOptions options = of_roles({{role::kLearner}, {role::kCollector}});
  options.auto_recover = true;
  options.retry_delay = 1ms;
  options.note = [](std::string_view) {};
  const auto result = parallel(options, [](Worker& worker) {
    Pipeline<Shared> loop(worker.pipeline());
    Exchange<Shared> exchange(worker, loop);
    exchange.add<&Shared::env_step>(role::kCollector)
        .waits_for(role::kLearner, role::kCollector, 30s);
    loop.use("exchange", std::move(exchange));
    loop.use("use", UseModel<Shared>(worker, loop, "policy", [](Shared&, const Buffer&) {},
                                     {.within = 30s}));
    loop.use("send", SendModel<Shared>(worker, loop, "policy",
                                       [](Shared&) { return Buffer::copy_of<float>({1}, {1}); }));
    loop.use("collect", [](Shared& it) { it.env_step += 5; }, {.roles = {role::kCollector}});
    loop.use("learn",
             [&](Shared& it) {
               if (++it.train_iter == 3 && worker.life() == 1) std::raise(SIGKILL);
               if (it.train_iter == 5) loop.finish("all is learned");
             },
             {.roles = {role::kLearner}});
    const bool learns = worker.has_role(role::kLearner);
    worker.connect(loop, learns ? follow_nobody : follow_role(role::kLearner));
    const RunResult ended = loop.run();
    need(static_cast<bool>(ended), ended.why);
  });
  EXPECT_TRUE(result) << result.text();
  EXPECT_EQ(result.retries, 1);
}

TEST(ModelExchange, UsesNoModelThatIsTooOld) {
  const auto result =
      parallel(of_roles({{role::kLearner}, {role::kCollector}}), [](Worker& worker) {
        Pipeline<Shared> loop(worker.pipeline());
        int used = 0;
        loop.use("use",
                 UseModel<Shared>(worker, loop, "policy", [&](Shared&, const Buffer&) { ++used; },
                                  {.max_lag = 100, .max_age = 1ms}));
        loop.use("nothing", [](Shared&) {});
        worker.connect(loop, follow_nobody);
        if (worker.has_role(role::kLearner)) {
          detail::emit_bundle(loop.events(), "model.policy",
                              {.json = R"({"version":1,"made_ms":5})",
                               .buffers = {Buffer::copy_of<float>({1}, {1})}},
                              true);
        }
        need(worker.barrier("sent").has_value(), "the other one");
        need(static_cast<bool>(loop.run({.max_steps = 2})), "a run");
        need(used == 0, "none");
      });
  EXPECT_TRUE(result) << result.text();
}

TEST(ModelExchange, GoesOnWithNoModelThatHasGrownTooOldInUse) {
  constexpr RemoteEvent<> kUsed{"used"};
  constexpr std::int64_t kMaxAgeMs = 3'600'000;
  const auto result =
      parallel(of_roles({{role::kLearner}, {role::kCollector}}), [&](Worker& worker) {
        Pipeline<Shared> loop(worker.pipeline());
        const auto use = [&](Shared&, const Buffer&) { loop.events().emit(kUsed, remote_only); };
        loop.use("use", UseModel<Shared>(worker, loop, "policy", use,
                                         {.max_lag = 1'000'000'000,
                                          .max_age = std::chrono::milliseconds(kMaxAgeMs),
                                          .within = 20ms}));
        loop.use("nothing", [](Shared&) {});
        worker.connect(loop, follow_nobody);
        std::atomic<bool> is_used = false;
        const Subscription heard = loop.events().on(kUsed, [&] { is_used = true; });
        need(worker.barrier("listens"));
        // Models that are soon too old, until the collector was fast enough to use one.
        for (auto left = 50ms; worker.has_role(role::kLearner) && !is_used; left *= 2) {
          const std::int64_t made_ms = detail::wall_clock_ms() - kMaxAgeMs + left.count();
          detail::emit_bundle(loop.events(), "model.policy",
                              {.json = R"({"version":1,"made_ms":)" + std::to_string(made_ms) + "}",
                               .buffers = {Buffer::copy_of<float>({1}, {1})}},
                              true);
          static_cast<void>(loop.events().wait_for(kUsed, left));
        }
        if (worker.has_role(role::kCollector)) {
          const RunResult ended = loop.run();
          need(ended.why.starts_with("step 'use': std::runtime_error: model 'policy': nothing new"),
               "why and not " + ended.why);
        }
        need(worker.barrier("end"));
      });
  EXPECT_TRUE(result) << result.text();
}

}  // namespace
}  // namespace trainyard::workers
