-- What wrk sends: one request with an id that is new each time or always the same, or requests that were written
-- beforehand (signed ones and batches).
--
-- BENCH_HEAD and BENCH_TAIL stand around the id, which is BENCH_RUN (told anew for each run), the thread and a counter,
-- all of fixed length. BENCH_FILE is the path of files, one for each thread, with the requests one after the other,
-- each behind a line with its length. BENCH_SAME: always the first one.
local threads = 0

function setup(thread)
    thread:set("number", threads)
    threads = threads + 1
end

local sent = 0
local head, tail, same
local file

-- Read one by one: wrk's first thread sends while the second is still in `init`, which must not take long.
local function next_request()
    local length = file:read("*n")
    if not length then
        file:seek("set")
        length = file:read("*n")
    end
    file:read(1)
    return file:read(length)
end

function init()
    local path = os.getenv("BENCH_FILE")
    if path then
        file = assert(io.open(path .. "." .. number, "rb"))
        if os.getenv("BENCH_SAME") then
            same = next_request()
        end
        return
    end
    local function part(name)
        local source = assert(io.open(os.getenv(name), "rb"))
        local text = source:read("*a")
        source:close()
        return text
    end
    head, tail = part("BENCH_HEAD"), part("BENCH_TAIL")
    head = head .. os.getenv("BENCH_RUN") .. string.format("%02d", number)
    if os.getenv("BENCH_SAME") then
        same = head .. "000000000" .. tail
    end
end

function request()
    sent = sent + 1
    if same then
        return same
    end
    if file then
        return next_request()
    end
    return head .. string.format("%09d", sent) .. tail
end

function done(summary, latency)
    local errors = summary.errors
    io.write(string.format(
        '\n{"requests": %d, "microseconds": %d, "p50": %f, "p99": %f, "socket_errors": %d, "not_2xx": %d}\n',
        summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
        errors.connect + errors.read + errors.write + errors.timeout, errors.status))
end
