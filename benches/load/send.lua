-- What wrk sends: one request with an id that is new each time or always the same, or requests that were written
-- beforehand (signed ones and batches).
--
-- BENCH_HEAD and BENCH_TAIL stand around the id, which is BENCH_RUN (told anew for each run), the thread and a counter,
-- all of fixed length. BENCH_FILE is the path of files, one for each thread, with the requests one after the other,
-- each behind a line with its length.
local threads = 0

function setup(thread)
    thread:set("number", threads)
    threads = threads + 1
end

local sent = 0
local head, tail, same
local requests

local function read_requests(path)
    local found = {}
    local file = assert(io.open(path, "rb"))
    while true do
        local length = file:read("*n")
        if not length then break end
        file:read(1)
        found[#found + 1] = file:read(length)
    end
    file:close()
    return found
end

function init()
    local path = os.getenv("BENCH_FILE")
    if path then
        requests = read_requests(path .. "." .. number)
        return
    end
    local function part(name)
        local file = assert(io.open(os.getenv(name), "rb"))
        local text = file:read("*a")
        file:close()
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
    if requests then
        return requests[(sent - 1) % #requests + 1]
    end
    return same or (head .. string.format("%09d", sent) .. tail)
end

function done(summary, latency)
    local errors = summary.errors
    io.write(string.format(
        '\n{"requests": %d, "microseconds": %d, "p50": %f, "p99": %f, "socket_errors": %d, "not_2xx": %d}\n',
        summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
        errors.connect + errors.read + errors.write + errors.timeout, errors.status))
end
