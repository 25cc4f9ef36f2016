# What is installed for programs in C++: the public headers, and an archive for each component. A
# component has the folders that are its own and links the components it stands on, so that who
# wants a training loop needs neither SQLite nor yaml-cpp nor RE2: cmake/trainyard-config.cmake.
include(CMakePackageConfigHelpers)

# The archives of all components.
add_custom_target(trainyard_package)

# trainyard_component(NAME FILE ... TARGET ... FOLDERS ... OBJECTS_OF ... ON ... USES ...)
#
# The folders are modules; OBJECTS_OF are libraries of others that go into the archive; ON are the
# components that it stands on; USES is what its users link of what their machine has.
function(trainyard_component name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FILE;TARGET" "FOLDERS;OBJECTS_OF;ON;USES")
  set(objects)
  foreach(folder IN LISTS arg_FOLDERS)
    list(APPEND objects $<TARGET_OBJECTS:trainyard_${folder}>)
  endforeach()
  foreach(library IN LISTS arg_OBJECTS_OF)
    list(APPEND objects $<TARGET_OBJECTS:${library}>)
  endforeach()
  set(archive trainyard_${name}_archive)
  add_library(${archive} STATIC ${objects})
  set_target_properties(${archive} PROPERTIES
    OUTPUT_NAME ${arg_FILE} EXPORT_NAME ${arg_TARGET} LINKER_LANGUAGE CXX)
  target_compile_features(${archive} INTERFACE cxx_std_23)
  target_include_directories(${archive} INTERFACE $<INSTALL_INTERFACE:include>)
  list(TRANSFORM arg_ON REPLACE "^(.+)$" "trainyard_\\1_archive")
  list(TRANSFORM arg_USES REPLACE "^(.+)$" "$<INSTALL_INTERFACE:\\1>")
  target_link_libraries(${archive} INTERFACE ${arg_ON} ${arg_USES})
  add_dependencies(trainyard_package ${archive})
  install(TARGETS ${archive} EXPORT trainyard-${name})
  install(EXPORT trainyard-${name} NAMESPACE trainyard:: FILE trainyard-${name}.cmake
    DESTINATION lib/cmake/trainyard)
endfunction()

# fmt is part of the archive, and in no public header: users need not have it.
trainyard_component(base FILE trainyard_base TARGET base
  FOLDERS base model wire sys
  OBJECTS_OF linked_fmt
  USES Threads::Threads nlohmann_json::nlohmann_json)
trainyard_component(pipeline FILE trainyard_pipeline TARGET pipeline
  FOLDERS pipeline
  ON base)
trainyard_component(ranks FILE trainyard_ranks TARGET ranks
  FOLDERS hardware process link text ranks
  ON pipeline base
  USES yaml-cpp ${CMAKE_DL_LIBS})
trainyard_component(workers FILE trainyard_workers TARGET workers
  FOLDERS workers
  ON ranks pipeline base)
trainyard_component(library FILE trainyard TARGET trainyard
  FOLDERS schedule journal run settings job plan report library
  ON workers ranks pipeline base
  USES SQLite::SQLite3 re2)

write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/trainyard-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/trainyard TYPE INCLUDE)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/trainyard-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/trainyard-config-version.cmake DESTINATION lib/cmake/trainyard)
