# cmake -D BUILD=... -P package_test.cmake; see CMakeLists.txt for the rest.
cmake_minimum_required(VERSION 3.23)

function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${what} failed (${code}):\n${text}")
  endif()
  message(STATUS "${what}: done")
  set(output "${text}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE "${WORK}")
run("installing" ${CMAKE_COMMAND} --install "${BUILD}" --prefix "${WORK}/elsewhere")
# What is installed may be moved.
file(RENAME "${WORK}/elsewhere" "${WORK}/prefix")

file(GLOB_RECURSE files "${WORK}/prefix/*.cmake" "${WORK}/prefix/*.hpp")
list(LENGTH files count)
if(count LESS 10)
  message(FATAL_ERROR "only ${count} files were installed: ${files}")
endif()
foreach(file IN LISTS files)
  if(file MATCHES "/internal/|_test\\.|\\.capnp")
    message(FATAL_ERROR "${file} must not be installed")
  endif()
  file(READ "${file}" text)
  foreach(path "${BUILD}" "${SOURCE}" "${WORK}/elsewhere")
    # As a path of its own, not as the end of another.
    string(REGEX REPLACE "([][+.*()^$?|\\\\])" "\\\\\\1" pattern "${path}/")
    if(text MATCHES "(^|[^A-Za-z0-9_.}-])${pattern}")
      message(FATAL_ERROR "${file} names ${path}, which a user does not have")
    endif()
  endforeach()
endforeach()

if(HAS_TROUPE)
  run("the installed program" "${WORK}/prefix/bin/troupe" version)
endif()

run("configuring the consumer"
    ${CMAKE_COMMAND} -S "${CONSUMER}" -B "${WORK}/build" -G "${GENERATOR}"
    "-DCMAKE_PREFIX_PATH=${WORK}/prefix" "-DCMAKE_CXX_COMPILER=${COMPILER}"
    "-DCMAKE_C_COMPILER=${C_COMPILER}" "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}")
run("building the consumer" ${CMAKE_COMMAND} --build "${WORK}/build")
foreach(program memory_only every_target consumer)
  if(EXISTS "${WORK}/build/${program}")
    run("running ${program}" "${WORK}/build/${program}")
    message("${output}")
  endif()
endforeach()
