# Writes the header OUTPUT with the text and the SHA-1 of every Lua script in FILES.
set(header "/* The Lua scripts as strings, with the SHA-1 of each. Made by cmake/embed_lua.cmake. */\n")
string(APPEND header "#ifndef HF_REDIS_LUA_SCRIPTS_H\n#define HF_REDIS_LUA_SCRIPTS_H\n")

foreach(file ${FILES})
  get_filename_component(name ${file} NAME_WE)
  # Reading as text drops these bytes, and then the SHA-1 would not be that of the string.
  file(READ ${file} hex HEX)
  if(hex MATCHES "^(..)*(00|0d)")
    message(FATAL_ERROR "${file}: NUL and carriage return cannot be embedded")
  endif()
  file(READ ${file} text)
  file(SHA1 ${file} sha)
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "?" "\\?" text "${text}") # or ??( would be a trigraph
  string(REPLACE "\t" "\\t" text "${text}")
  string(REPLACE "\n" "\\n\"\n\t\"" text "${text}")
  string(APPEND header "\nstatic const char hf__lua_${name}[] =\n\t\"${text}\";\n"
                       "static const char hf__lua_${name}_sha[] = \"${sha}\";\n")
endforeach()

string(APPEND header "\n#endif\n")
file(WRITE ${OUTPUT} "${header}")
