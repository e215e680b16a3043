-- The recipe that hookonce replaces: the first copy of an event goes on to the handler, the others are answered here.
-- It is what people write, with what it lacks: nothing is released when the handler fails.
local json = require "cjson.safe"
local redis = require "nginx.redis"

ngx.req.read_body()
local body = ngx.req.get_body_data()
local event = body and json.decode(body)
if not event or not event.id then
    return
end

local store = redis:new()
store:set_timeout(500)
local connected, reason = store:connect("127.0.0.1", redis_port)
if not connected then
    ngx.log(ngx.ERR, "redis: ", reason)
    return ngx.exit(503)
end
local first, fault = store:set("recipe:" .. event.id, "1", "NX", "EX", 604800)
if not first then
    ngx.log(ngx.ERR, "redis: ", fault)
    return ngx.exit(503)
end
store:set_keepalive(60000, 256)

if first == ngx.null then
    ngx.header.content_type = "application/json"
    ngx.print('{"received":true,"duplicate":true}')
    return ngx.exit(200)
end
