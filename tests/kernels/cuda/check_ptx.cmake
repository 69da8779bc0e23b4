# cmake -P check_ptx.cmake FILE...: fails if the device's code in these files adds floats in no order
# (atomically), fuses a product with a sum, or takes an approximation: then a pass would not give the
# same bits each time, or not those of the host.
math(EXPR last "${CMAKE_ARGC} - 1")
set(files 0)
foreach(i RANGE 3 ${last})
  set(file "${CMAKE_ARGV${i}}")
  file(STRINGS "${file}" wrong REGEX "[ \t](atom|red|fma)\\.|\\.approx|\\.ftz")
  if(wrong)
    list(JOIN wrong "\n" wrong)
    message(FATAL_ERROR "${file}:\n${wrong}")
  endif()
  file(STRINGS "${file}" entries REGEX "\\.entry")
  if(NOT entries)
    message(FATAL_ERROR "${file} has no kernel: nothing was checked")
  endif()
  math(EXPR files "${files} + 1")
endforeach()
message(STATUS "check_ptx: ${files} files")
