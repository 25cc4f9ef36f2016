#include "report/devices.h"

#include <algorithm>
#include <ranges>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include "model/status.h"
#include "report/terminal_text.h"
#include "text/readable_json.h"

namespace trainyard::report {
namespace {

using text::text_or_null;
using Json = nlohmann::ordered_json;

/// Whether a list such as "0,2" contains this GPU.
bool has_gpu(std::string_view gpus, std::string_view label) {
  return std::ranges::any_of(std::views::split(gpus, ','), [label](const auto gpu) {
    return std::string_view(gpu.begin(), gpu.end()) == label;
  });
}

std::vector<const journal::TaskRow*> tasks_on(const DevicesView& view, const model::Gpu& gpu) {
  std::vector<const journal::TaskRow*> tasks;
  for (const journal::TaskRow& task : view.tasks) {
    // Its GPUs are those of the attempt that has ended; its next one may be assigned others.
    if (task.standing.status == Status::Interrupt) continue;
    if (has_gpu(task.gpus, gpu.label())) tasks.push_back(&task);
  }
  return tasks;
}

std::string promise_text(const journal::TaskRow& task, const DeviceView& device) {
  const bool whole = task.gpu_memory_requested == Bytes{};
  const std::string has =
      device.processes_known ? ", uses " + to_text(task.gpu_memory_now) : std::string();
  return fmt::format("    {}/{}: reserved {}{}\n", plain(task.group_name), plain(task.id),
                     whole ? "all of it" : to_text(task.gpu_memory_requested), has);
}

/// "12: 3 GB, user mona: python train.py; task train/lr=1 of runs/sweep".
std::string process_text(const DeviceProcess& process) {
  std::string text = fmt::format("    {}: {}", process.pid, to_text(process.memory));
  if (!process.user.empty()) text += fmt::format(", user {}", plain(process.user));
  if (!process.command.empty()) text += fmt::format(": {}", plain(process.command));
  if (process.task.empty()) return text + "\n";
  return text + fmt::format("; task {} of {}\n", plain(process.task), plain(process.run_directory));
}

/// A reservation on the GPU by another run.
struct OtherPromise {
  const model::Neighbour* run = nullptr;
  model::CardPromise card;
};
std::vector<OtherPromise> promised_by_others(const DevicesView& view, const model::Gpu& gpu) {
  std::vector<OtherPromise> promises;
  for (const model::Neighbour& run : view.neighbours) {
    const model::HeldPromise held = model::sum_of(run.its.held, run.its.claimed);
    const model::CardPromise* const card = model::find_card(held, gpu.uuid);
    if (card != nullptr) promises.push_back({.run = &run, .card = *card});
  }
  return promises;
}

/// "  reserved by another user's run (mona): 18 GB since 02:10".
std::string other_promise_text(const OtherPromise& promise) {
  const model::CardPromise& card = promise.card;
  return fmt::format("  reserved by {}: {} since {}\n", plain(model::name_of(*promise.run)),
                     card.whole ? "all of it" : to_text(card.memory),
                     model::time_of_day(card.since_unix_s, *promise.run));
}

/// " until 18:00", " until 07:00 tomorrow", " until 07:12 in 7 days".
std::string until_text(std::int64_t unix_s, std::int64_t midnight_unix_s) {
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  constexpr std::int64_t kDay = 24 * kHour;
  const std::int64_t later = std::max<std::int64_t>(unix_s - midnight_unix_s, 0);
  std::string text =
      fmt::format(" until {:02}:{:02}", later % kDay / kHour, later % kHour / kMinute);
  const std::int64_t days = later / kDay;
  if (days == 1) text += " tomorrow";
  if (days > 1) text += fmt::format(" in {} days", days);
  return text;
}

/// "  GPU 0 dropped out 3 times, avoided until 23:40"
std::string drop_outs_text(const DeviceView& device, std::int64_t midnight_unix_s) {
  if (!device.drop_outs) return {};
  const int times = device.drop_outs->times;
  const std::int64_t until = device.drop_outs->avoided_until_unix_s;
  return fmt::format("  GPU {} dropped out {}{}\n", device.gpu.label(),
                     times == 1 ? "once" : fmt::format("{} times", times),
                     until == 0 ? "" : ", avoided" + until_text(until, midnight_unix_s));
}

std::string device_text(const DevicesView& view, const DeviceView& device) {
  const model::Gpu& gpu = device.gpu;
  if (gpu.uuid.empty()) {
    return fmt::format("GPU {}: DOES NOT ANSWER, though the driver counts it\n", gpu.label());
  }
  const std::string known =
      gpu.name.empty() ? "" : fmt::format("{}, {}, ", plain(gpu.name), plain(gpu.pci));
  std::string text = fmt::format("GPU {}: {}{}\n", gpu.label(), known, plain(gpu.uuid));
  const std::string drop_outs = drop_outs_text(device, view.midnight_unix_s);
  if (!device.present) return text + "  does not answer\n" + drop_outs;
  const std::string at_work =
      device.utilization ? fmt::format("; busy {:.0f} % of the time", 100 * *device.utilization)
                         : std::string();
  text += fmt::format("  {} of {} used, {} free{}\n", to_text(device.used), to_text(gpu.memory),
                      to_text(gpu.memory - device.used), at_work);
  text += drop_outs;
  if (device.drained) {
    text += fmt::format("  {} ('trainyard drain')\n",
                        drained_text(*device.drained, view.midnight_unix_s));
  }
  const std::vector<const journal::TaskRow*> tasks = tasks_on(view, gpu);
  if (!tasks.empty()) text += fmt::format("  reserved by {}:\n", plain(view.run_directory));
  for (const journal::TaskRow* task : tasks) text += promise_text(*task, device);
  for (const OtherPromise& promise : promised_by_others(view, gpu)) {
    text += other_promise_text(promise);
  }
  if (!device.processes_known) {
    text += "  the driver does not report how much memory each process uses\n";
  } else if (!device.processes.empty()) {
    text += "  processes:\n";
    for (const DeviceProcess& process : device.processes) text += process_text(process);
  }
  return text;
}

/// The device that a run calls so. A GPU that the run can read now, and this process cannot, is
/// only hidden from it, as by CUDA_VISIBLE_DEVICES.
DeviceView* device_of(DevicesView& view, const model::DropOuts& seen) {
  if (DeviceView* const known = find_device(view, seen.uuid)) return known;
  const model::Gpu gone{.number = seen.number, .uuid = seen.uuid, .slice = seen.slice};
  const auto counted = std::ranges::find_if(view.devices, [&gone](const DeviceView& it) {
    return it.gpu.uuid.empty() && it.gpu.label() == gone.label();
  });
  if (counted != view.devices.end()) {
    counted->gpu.uuid = seen.uuid;
    counted->present = false;
    return &*counted;
  }
  if (seen.avoided_until_unix_s != 0) return nullptr;
  return &view.devices.emplace_back(DeviceView{.gpu = gone, .present = false});
}

}  // namespace

DeviceView* find_device(DevicesView& view, const std::string& uuid) {
  const auto found =
      std::ranges::find(view.devices, uuid, [](const DeviceView& it) { return it.gpu.uuid; });
  return found == view.devices.end() ? nullptr : &*found;
}

void add_drop_outs(DevicesView& view, const model::Neighbour& run, std::int64_t now_unix_s) {
  if (!run.is_ours) return;
  for (model::DropOuts seen : run.its.drop_outs) {
    DeviceView* const device = device_of(view, seen);
    if (device == nullptr) continue;
    if (device->drop_outs && device->drop_outs->times >= seen.times) continue;
    if (seen.avoided_until_unix_s <= now_unix_s) seen.avoided_until_unix_s = 0;
    device->drop_outs = std::move(seen);
  }
}

std::string drained_text(const model::Drain& drain, std::int64_t midnight_unix_s) {
  std::string text = "no new tasks start on it";
  return drain.until_unix_s == 0 ? text : text + until_text(drain.until_unix_s, midnight_unix_s);
}

std::string devices_text(const DevicesView& view) {
  std::string text;
  if (view.devices.empty() || !view.none_reason.empty()) {
    text =
        fmt::format("no GPU{}\n", view.none_reason.empty() ? "" : ": " + plain(view.none_reason));
  }
  for (const DeviceView& device : view.devices) text += device_text(view, device);
  for (const std::string& note : view.notes) text += plain(note) + "\n";
  return text;
}

namespace {

Json device_json(const DevicesView& view, const DeviceView& device) {
  const model::Gpu& gpu = device.gpu;
  Json processes = Json::array();
  for (const DeviceProcess& process : device.processes) {
    processes.push_back(
        {{"pid", process.pid},
         {"memory_bytes", process.memory.count},
         {"user", text_or_null(process.user)},
         {"command", text_or_null(process.command)},
         {"other_user", process.other_user ? Json(*process.other_user) : Json(nullptr)},
         {"task", text_or_null(process.task)},
         {"run_dir", text_or_null(process.run_directory)}});
  }
  Json promises = Json::array();
  for (const journal::TaskRow* task : tasks_on(view, gpu)) {
    promises.push_back(
        {{"group", task->group_name},
         {"id", task->id},
         {"attempt", task->attempt},
         {"whole", task->gpu_memory_requested == Bytes{}},
         {"memory_promised_bytes", task->gpu_memory_requested.count},
         {"memory_now_bytes",
          device.processes_known ? Json(task->gpu_memory_now.count) : Json(nullptr)}});
  }
  Json others = Json::array();
  for (const OtherPromise& promise : promised_by_others(view, gpu)) {
    const model::Neighbour& run = *promise.run;
    others.push_back({{"user", run.user},
                      {"user_name", text_or_null(run.user_name)},
                      {"own", run.is_ours},
                      {"run", text::number_or_null(run.its.run)},
                      {"name", text_or_null(run.its.name)},
                      {"tasks", promise.card.tasks},
                      {"whole", promise.card.whole},
                      {"memory_promised_bytes", promise.card.memory.count},
                      {"since_unix_s", promise.card.since_unix_s}});
  }
  return {{"label", gpu.label()},
          {"index", gpu.number},
          {"uuid", gpu.uuid},
          {"pci", gpu.pci},
          {"name", gpu.name},
          {"maker", gpu.maker == model::GpuMaker::Amd ? "AMD" : "NVIDIA"},
          {"mig_slice", gpu.slice.has_value()},
          {"present", device.present},
          {"memory_total_bytes", gpu.memory.count},
          {"memory_free_bytes",
           device.present ? Json((gpu.memory - device.used).count) : Json(nullptr)},
          {"utilization", device.utilization ? Json(*device.utilization) : Json(nullptr)},
          {"drained", device.drained.has_value()},
          {"drained_until_unix_s", device.drained && device.drained->until_unix_s != 0
                                       ? Json(device.drained->until_unix_s)
                                       : Json(nullptr)},
          {"drop_outs", device.drop_outs ? device.drop_outs->times : 0},
          {"avoided_until_unix_s", device.drop_outs && device.drop_outs->avoided_until_unix_s != 0
                                       ? Json(device.drop_outs->avoided_until_unix_s)
                                       : Json(nullptr)},
          {"processes", device.processes_known ? processes : Json(nullptr)},
          {"promises", promises},
          {"other_runs", others}};
}

}  // namespace

std::string devices_json(const DevicesView& view) {
  Json devices = Json::array();
  for (const DeviceView& device : view.devices) devices.push_back(device_json(view, device));
  const Json whole{{"devices", devices},
                   {"none_reason", text_or_null(view.none_reason)},
                   {"notes", view.notes},
                   {"run_dir", text_or_null(view.run_directory)}};
  return text::readable_json(whole);
}

}  // namespace trainyard::report
