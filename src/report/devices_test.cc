#include "report/devices.h"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/status.h"
#include "report/test_rows.h"

namespace trainyard::report {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

DevicesView two_devices() {
  DevicesView view;
  view.devices = {
      {.gpu =
           {.number = 0, .uuid = "GPU-aaaa", .name = "Fake A", .pci = "01:00.0", .memory = gb(8)},
       .utilization = 0.4,
       .used = gb(4),
       .processes = {{.pid = 12, .memory = gb(3)}, {.pid = 77, .memory = gb(1)}}},
      {.gpu =
           {.number = 1, .uuid = "GPU-bbbb", .name = "Fake B", .pci = "02:00.0", .memory = gb(8)},
       .present = false}};
  view.run_directory = "runs/sweep";
  journal::TaskRow task = started_row("lr=1");
  task.gpus = "0";
  task.gpu_memory_requested = gb(5);
  task.gpu_memory_now = gb(3);
  view.tasks = {task};
  task.id = "other";
  task.gpus = "10";
  view.tasks.push_back(task);
  return view;
}

TEST(Devices, ShowWhatIsOnThemAndPromised) {
  EXPECT_EQ(devices_text(two_devices()),
            "GPU 0: Fake A, 01:00.0, GPU-aaaa\n"
            "  4 GB of 8 GB used, 4 GB free; busy 40 % of the time\n"
            "  reserved by runs/sweep:\n"
            "    train/lr=1: reserved 5 GB, uses 3 GB\n"
            "  processes:\n"
            "    12: 3 GB\n"
            "    77: 1 GB\n"
            "GPU 1: Fake B, 02:00.0, GPU-bbbb\n"
            "  does not answer\n");
}

TEST(Devices, ShowWhatOtherRunsHaveReserved) {
  DevicesView view = two_devices();
  model::Neighbour mona{.user = 1001, .user_name = "mona", .its = {.run = 7, .name = "hers"}};
  mona.its.held.cards = {{.uuid = "GPU-aaaa", .memory = gb(2), .tasks = 3, .since_unix_s = 7'800}};
  model::Neighbour ours{.is_ours = true, .its = {.run = 46, .name = "vit"}};
  ours.its.claimed.cards = {{.uuid = "GPU-aaaa", .tasks = 1, .whole = true, .since_unix_s = 60}};
  view.neighbours = {mona, ours};
  EXPECT_THAT(devices_text(view), HasSubstr("    train/lr=1: reserved 5 GB, uses 3 GB\n"
                                            "  reserved by another user's run (mona): 2 GB since "
                                            "02:10\n"
                                            "  reserved by your run 46 (vit): all of it since "
                                            "00:01\n"
                                            "  processes:\n"));
  const std::string json = devices_json(view);
  EXPECT_THAT(json, HasSubstr(R"("user_name": "mona")"));
  EXPECT_THAT(json, HasSubstr(R"("memory_promised_bytes": 2000000000)"));
  EXPECT_THAT(json, HasSubstr(R"("other_runs": [])")) << "of the other one";
}

TEST(Devices, ShowHowOftenTheyDroppedOutAndUntilWhenTheyAreAvoided) {
  DevicesView view = two_devices();
  view.devices[0].drop_outs = {
      .uuid = "GPU-aaaa", .times = 3, .avoided_until_unix_s = ((23 * 60) + 40) * 60};
  view.devices[1].drop_outs = {.uuid = "GPU-bbbb", .times = 1};
  const std::string text = devices_text(view);
  EXPECT_THAT(text, HasSubstr("  4 GB of 8 GB used, 4 GB free; busy 40 % of the time\n"
                              "  GPU 0 dropped out 3 times, avoided until 23:40\n"));
  EXPECT_THAT(text, HasSubstr("  does not answer\n"
                              "  GPU 1 dropped out once\n"));
  const std::string json = devices_json(view);
  EXPECT_THAT(json, HasSubstr("\"drop_outs\": 3"));
  EXPECT_THAT(json, HasSubstr("\"avoided_until_unix_s\": 85200"));
  EXPECT_THAT(json, HasSubstr("\"avoided_until_unix_s\": null"));
}

model::Neighbour run_that_has_seen(model::DropOuts seen) {
  return {.is_ours = true, .its = {.ticket = "1-a", .drop_outs = {std::move(seen)}}};
}

TEST(Devices, NameAGpuThatDroppedOutAndIsNoLongerThereAsARunKnewIt) {
  DevicesView view = two_devices();
  view.devices.push_back({.gpu = {.number = 2, .late = true}});
  add_drop_outs(view, run_that_has_seen({.uuid = "GPU-cccc", .number = 2, .times = 2}), 60);
  add_drop_outs(view, run_that_has_seen({.uuid = "GPU-dddd", .number = 3, .times = 1}), 60);
  add_drop_outs(view, run_that_has_seen({.uuid = "GPU-dddd", .number = 3, .times = 4}), 60);
  EXPECT_THAT(devices_text(view), EndsWith("  does not answer\n"
                                           "GPU 2: GPU-cccc\n"
                                           "  does not answer\n"
                                           "  GPU 2 dropped out 2 times\n"
                                           "GPU 3: GPU-dddd\n"
                                           "  does not answer\n"
                                           "  GPU 3 dropped out 4 times\n"));
}

TEST(Devices, ShowDropOutsOfAGpuThatTheyCanReadAtItsPlaceOnly) {
  DevicesView view = two_devices();
  view.devices.pop_back();
  model::DropOuts seen{.uuid = "GPU-aaaa", .number = 5, .times = 1, .avoided_until_unix_s = 60};
  add_drop_outs(view, run_that_has_seen(seen), 60);
  seen = {.uuid = "GPU-hidden", .number = 1, .times = 1, .avoided_until_unix_s = 60};
  add_drop_outs(view, run_that_has_seen(seen), 60);
  ASSERT_EQ(view.devices.size(), 1U);
  EXPECT_EQ(view.devices[0].drop_outs,
            (model::DropOuts{.uuid = "GPU-aaaa", .number = 5, .times = 1}));
}

TEST(Devices, SayWhyNoGpuIsThereNextToOneThatDroppedOut) {
  DevicesView view{.none_reason = "no driver"};
  add_drop_outs(view, run_that_has_seen({.uuid = "GPU-aaaa", .times = 1}), 60);
  EXPECT_EQ(devices_text(view),
            "no GPU: no driver\n"
            "GPU 0: GPU-aaaa\n"
            "  does not answer\n"
            "  GPU 0 dropped out once\n");
}

TEST(Devices, TellNothingOfWhatTheDriverHides) {
  DevicesView view = two_devices();
  view.devices[0].utilization = std::nullopt;
  view.devices[0].processes_known = false;
  EXPECT_THAT(devices_text(view),
              HasSubstr("  4 GB of 8 GB used, 4 GB free\n"
                        "  reserved by runs/sweep:\n"
                        "    train/lr=1: reserved 5 GB\n"
                        "  the driver does not report how much memory each process uses\n"));
  const std::string json = devices_json(view);
  EXPECT_THAT(json, HasSubstr(R"("utilization": null)"));
  EXPECT_THAT(json, HasSubstr(R"("memory_now_bytes": null)"));
  EXPECT_THAT(json, HasSubstr(R"("processes": null)"));
}

TEST(Devices, HaveNothingReservedForATaskThatWaitsForItsNextTry) {
  DevicesView view = two_devices();
  view.tasks[0].standing.status = Status::Interrupt;
  EXPECT_THAT(devices_text(view), Not(HasSubstr("reserved")));
  EXPECT_THAT(devices_json(view), HasSubstr("\"promises\": []"));
}

TEST(Devices, NameTheOtherUserOfAProcess) {
  DevicesView view = two_devices();
  DeviceProcess& other = view.devices[0].processes[1];
  other.other_user = 1001;
  other.user = "mona";
  other.command = "python x.py";
  EXPECT_THAT(devices_text(view), HasSubstr("    12: 3 GB\n"
                                            "    77: 1 GB, user mona: python x.py\n"));
  EXPECT_THAT(devices_json(view), HasSubstr("\"other_user\": 1001"));
  other.task = "train/lr=1";
  other.run_directory = "runs/sweep";
  EXPECT_THAT(devices_text(view),
              HasSubstr("    77: 1 GB, user mona: python x.py; task train/lr=1 of runs/sweep\n"));
}

TEST(Devices, ThatDidNotAnswerFromTheBeginningAreShown) {
  const DevicesView view{.devices = {{.gpu = {.number = 3, .late = true}, .present = false}}};
  EXPECT_EQ(devices_text(view), "GPU 3: DOES NOT ANSWER, though the driver counts it\n");
}

TEST(Devices, SayWhyThereAreNone) {
  EXPECT_EQ(devices_text({.none_reason = "no NVIDIA driver is installed"}),
            "no GPU: no NVIDIA driver is installed\n");
}

TEST(Devices, AreJsonForPrograms) {
  const std::string json = devices_json(two_devices());
  EXPECT_THAT(json, HasSubstr(R"("uuid": "GPU-aaaa")"));
  EXPECT_THAT(json, HasSubstr(R"("memory_free_bytes": 4000000000)"));
  EXPECT_THAT(json, HasSubstr(R"("id": "lr=1")"));
  EXPECT_THAT(json, HasSubstr(R"("memory_promised_bytes": 5000000000)"));
  EXPECT_THAT(json, HasSubstr(R"("memory_free_bytes": null)"));
  EXPECT_THAT(json, Not(HasSubstr("\"other\"")));
  EXPECT_THAT(json, HasSubstr("\"other_user\": null"));
  EXPECT_THAT(json, HasSubstr(R"("utilization": 0.4)"));
  EXPECT_THAT(json, HasSubstr(R"("memory_now_bytes": 3000000000)"));
}

}  // namespace
}  // namespace trainyard::report
