if not held then
    return 0
end
if not stored() then
    return 2
end
redis.call('XCLAIM', stream, group, consumer, 0, id, 'IDLE', 0, 'RETRYCOUNT', deliveries, 'JUSTID')
return 1
