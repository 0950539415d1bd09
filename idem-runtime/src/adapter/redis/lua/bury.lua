-- KEYS[2]: the dead letters. ARGV: the reason; then, for an entry that is not in the stream any more, its fields.
local reason, entry = ARGV[5], stored()
if (pending and not held) or (entry and not pending) then
    return 0
end
local fields = entry and entry[2]
if not fields then
    if #ARGV < 7 then
        return 2
    end
    fields = {}
    for i = 6, #ARGV do
        fields[#fields + 1] = ARGV[i]
    end
end
local dead = { 'idem-reason', reason, 'idem-id', id, 'idem-deliveries', deliveries }
-- Lua passes no more than 8,000 arguments.
if #fields > 4000 then
    fields = { 'idem-fields', cjson.encode(fields) }
end
for i = 1, #fields, 2 do
    local name = fields[i]
    -- Those of an earlier burial.
    if name ~= 'idem-reason' and name ~= 'idem-id' and name ~= 'idem-deliveries' then
        dead[#dead + 1] = name
        dead[#dead + 1] = fields[i + 1]
    end
end
redis.call('XADD', KEYS[2], '*', unpack(dead))
redis.call('XACK', stream, group, id)
return 1
