-- ARGV: group. Returns how many are pending, how many are not read yet, the id of the oldest of both or an empty text, the
-- time in seconds, and how many were trimmed before the group read them.
local stream = KEYS[1]
local function named(flat)
    local fields = {}
    for i = 1, #flat, 2 do
        fields[flat[i]] = flat[i + 1]
    end
    return fields
end
local group
for _, each in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
    each = named(each)
    if each.name == ARGV[1] then
        group = each
    end
end
if not group then
    return redis.error_reply('NOGROUP the group is not there')
end
local info = named(redis.call('XINFO', 'STREAM', stream))
local next = redis.call('XRANGE', stream, '(' .. group['last-delivered-id'], '+', 'COUNT', 1)[1]
local unread = 0
if next then
    -- Redis 7 counts what was trimmed as well, and 6.2 does not count: at most as many as are there.
    unread = math.max(1, math.min(group.lag or info.length, info.length))
end
local trimmed = 0
if group['entries-read'] and info['entries-added'] then
    trimmed = math.max(0, info['entries-added'] - info.length - group['entries-read'])
end
local oldest = redis.call('XPENDING', stream, ARGV[1])[2] or (next and next[1]) or ''
return { group.pending, unread, oldest, redis.call('TIME')[1], trimmed }
