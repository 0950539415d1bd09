-- The beginning of all scripts that settle. The number of deliveries tells two deliveries to one consumer apart.
local stream, group, consumer, id, deliveries = KEYS[1], ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local pending = redis.call('XPENDING', stream, group, id, id, 1)[1]
local held = pending and pending[2] == consumer and pending[4] == deliveries
local function stored()
    return redis.call('XRANGE', stream, id, id)[1]
end
