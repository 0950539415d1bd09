-- ARGV: group, consumer. What is pending for a consumer would be lost with it.
for _, each in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
    local fields = {}
    for i = 1, #each, 2 do
        fields[each[i]] = each[i + 1]
    end
    if fields.name == ARGV[2] and fields.pending == 0 then
        redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
    end
end
return 0
