# Finds LLVM and MLIR 22 through llvm-config-22 and defines the interface library tile_llvm.
# The MLIR C API exists only as archives (libMLIRCAPI*.a); the rest is shared in development and static in
# release, where everything lies in one rescanned link group and lld drops what is not reached.
find_program(LLVM_CONFIG NAMES llvm-config-22 REQUIRED)
execute_process(COMMAND ${LLVM_CONFIG} --prefix OUTPUT_VARIABLE TILE_LLVM_PREFIX OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${LLVM_CONFIG} --version OUTPUT_VARIABLE TILE_LLVM_VERSION OUTPUT_STRIP_TRAILING_WHITESPACE)

add_library(tile_llvm INTERFACE)
target_include_directories(tile_llvm SYSTEM INTERFACE ${TILE_LLVM_PREFIX}/include)
set(TILE_LLVM_LIB ${TILE_LLVM_PREFIX}/lib)
file(GLOB TILE_MLIR_CAPI ${TILE_LLVM_LIB}/libMLIRCAPI*.a)
if(TILE_STATIC_LLVM)
  file(GLOB TILE_LLVM_ARCHIVES ${TILE_LLVM_LIB}/libMLIR*.a ${TILE_LLVM_LIB}/libLLVM*.a)
  list(FILTER TILE_LLVM_ARCHIVES EXCLUDE REGEX "(Test|BOLT|Exegesis|Fuzzer|DTLTO|TableGen)")
  # Compression from archives, where they are there, so that libtile runs where these libraries are not.
  find_library(TILE_ZSTD_ARCHIVE libzstd.a)
  find_library(TILE_ZLIB_ARCHIVE libz.a)
  target_link_libraries(tile_llvm INTERFACE -Wl,--start-group ${TILE_LLVM_ARCHIVES} -Wl,--end-group
    $<IF:$<BOOL:${TILE_ZLIB_ARCHIVE}>,${TILE_ZLIB_ARCHIVE},z>
    $<IF:$<BOOL:${TILE_ZSTD_ARCHIVE}>,${TILE_ZSTD_ARCHIVE},-l:libzstd.so.1> stdc++ m dl pthread)
  target_link_options(tile_llvm INTERFACE -B${TILE_LLVM_PREFIX}/bin -fuse-ld=lld -Wl,--icf=all
    -Wl,--keep-unique=__jit_debug_register_code) # where debuggers stop, which no other function should
  add_compile_options(-ffunction-sections -fdata-sections)
  add_link_options(-Wl,--gc-sections)
else()
  target_link_libraries(tile_llvm INTERFACE -Wl,--start-group ${TILE_MLIR_CAPI} -Wl,--end-group
    ${TILE_LLVM_LIB}/libMLIR.so ${TILE_LLVM_LIB}/libLLVM.so stdc++ m dl pthread)
  target_link_options(tile_llvm INTERFACE -B${TILE_LLVM_PREFIX}/bin -fuse-ld=lld -Wl,-rpath,${TILE_LLVM_LIB})
endif()
