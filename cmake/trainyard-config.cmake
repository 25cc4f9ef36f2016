# find_package(trainyard) gives trainyard::trainyard.
include(CMakeFindDependencyMacro)
find_dependency(fmt)
find_dependency(Threads)
find_dependency(nlohmann_json)
find_dependency(SQLite3)
find_dependency(yaml-cpp)
include(${CMAKE_CURRENT_LIST_DIR}/trainyard-targets.cmake)
