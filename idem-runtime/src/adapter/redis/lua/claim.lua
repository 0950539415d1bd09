-- ARGV: group, consumer, lease in milliseconds, cursor, count.
-- Returns the next cursor, the entries with the number of their deliveries, and the ids of those that are gone.
local stream, group, consumer = KEYS[1], ARGV[1], ARGV[2]
local scan = redis.call('XAUTOCLAIM', stream, group, consumer, ARGV[3], ARGV[4], 'COUNT', ARGV[5], 'JUSTID')
local entries, gone = {}, {}
for _, id in ipairs(scan[2]) do
    local deliveries = redis.call('XPENDING', stream, group, id, id, 1)[1][4] + 1
    local entry = redis.call('XCLAIM', stream, group, consumer, 0, id, 'RETRYCOUNT', deliveries)[1]
    if entry then
        entries[#entries + 1] = { id, deliveries, entry[2] }
    else
        -- Redis 6.2 leaves it pending.
        redis.call('XACK', stream, group, id)
        gone[#gone + 1] = id
    end
end
for _, id in ipairs(scan[3] or {}) do
    gone[#gone + 1] = id
end
return { scan[1], entries, gone }
