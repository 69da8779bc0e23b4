# How every target of the project is made: language level, warnings, sanitizers, visibility.
include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

find_program(TROUPE_CCACHE ccache)
if(TROUPE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${TROUPE_CCACHE}")
endif()

# Warnings and sanitizers: private to our own targets, never exported.
add_library(troupe_options INTERFACE)
target_compile_options(
  troupe_options
  INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough
            $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety -Werror=thread-safety>
            $<$<BOOL:${TROUPE_WERROR}>:-Werror>)
if(TROUPE_SANITIZE)
  target_compile_options(troupe_options INTERFACE -fsanitize=${TROUPE_SANITIZE}
                                                  -fno-omit-frame-pointer -fno-sanitize-recover=all)
  # CAF's headers bind a reference to the empty tuple behind a null pointer when a function without
  # arguments is spawned. An access through a null pointer is seen all the same, by the other one.
  if(TROUPE_SANITIZE MATCHES "address.*undefined")
    target_compile_options(troupe_options INTERFACE -fno-sanitize=null)
  endif()
  target_link_options(troupe_options INTERFACE -fsanitize=${TROUPE_SANITIZE})
  # Everything that is linked must carry the run-time, the tests' own main() too.
  add_link_options(-fsanitize=${TROUPE_SANITIZE})
endif()

# troupe_library(NAME SOURCES ... HEADERS ... [PUBLIC ...] [PRIVATE ...])
#
# A static library `troupe_NAME` with the alias `troupe::NAME`. HEADERS are installed; they are
# included as "<folder>/<header>.hpp" from the repository's root and, once installed, from
# include/troupe.
function(troupe_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;HEADERS;PUBLIC;PRIVATE" ${ARGN})
  set(target troupe_${name})
  add_library(${target} STATIC ${ARG_SOURCES})
  add_library(troupe::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES
                                  ${ARG_HEADERS})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_link_libraries(
    ${target}
    PUBLIC ${ARG_PUBLIC}
    PRIVATE ${ARG_PRIVATE} $<BUILD_INTERFACE:troupe_options>)
  install(
    TARGETS ${target}
    EXPORT TroupeTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/troupe)
endfunction()

# troupe_program(NAME SOURCES ... [LIBS ...]): an executable with the project's options.
function(troupe_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} troupe_options)
endfunction()

# troupe_test(NAME LABELS unit|sim|multiprocess|netns|gpu|slow SOURCES ... [LIBS ...] [TIMEOUT s])
#
# One GoogleTest executable, one ctest entry. Zero tests run is a failure.
function(troupe_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "LABELS;SOURCES;LIBS;ARGS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    # For what hangs: a test of 45 s with a sanitizer has taken 120 s on a busy machine.
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} GTest::gtest GTest::gmock
                                        GTest::gtest_main troupe_options)
  if(NOT TROUPE_SANITIZE AND NOT "sim" IN_LIST ARG_LABELS)
    # What a test says of its own takes no time; optimising it took a third of the compiler's.
    target_compile_options(${name} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O0>)
  endif()
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT}
                                          FAIL_REGULAR_EXPRESSION "Running 0 tests")
  if(TROUPE_SANITIZE)
    # Memory that is not there is an error that callers handle, so tests ask for too much of it.
    set_property(
      TEST ${name}
      PROPERTY ENVIRONMENT_MODIFICATION
               "ASAN_OPTIONS=path_list_append:allocator_may_return_null=1"
               "LSAN_OPTIONS=path_list_append:suppressions=${PROJECT_SOURCE_DIR}/tests/support/lsan.supp"
               "TSAN_OPTIONS=path_list_append:allocator_may_return_null=1")
  endif()
endfunction()
